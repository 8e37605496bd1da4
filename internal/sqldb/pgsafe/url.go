package pgsafe

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// target is a parsed URL: the servers to connect to, and the user.
type target struct {
	hosts                    []host // at least one
	attrs                    sessionAttrs
	user, password, database string
	appName                  string
	connectTimeout           time.Duration
	readTimeout              time.Duration // this and the next two: 0 if the URL does not contain it
	writeTimeout             time.Duration
	longTimeout              time.Duration
	maxConns                 int
	settings                 []setting // of the server, sorted by name
}

type setting struct{ name, value string }

// params are the parameters of the URL's query. Those that are not removed by take are settings of
// the server.
type params map[string][]string

func (p params) take(name string) string {
	vs := p[name]
	delete(p, name)
	if len(vs) == 0 {
		return ""
	}
	return vs[len(vs)-1]
}

// errURL contains no part of the URL: with a misplaced character the password is parsed as a host
// or a port.
var errURL = errors.New("pgsafe: the database URL is malformed: want postgres://user:password@host:port/database, " +
	"with special characters in the password percent-encoded")

func parseURL(raw string) (target, error) {
	raw, hosts := cutHosts(raw)
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Fragment != "" ||
		!slices.Contains([]string{"postgres", "postgresql"}, u.Scheme) {
		return target{}, errURL
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !clean(u.Path) || !clean(u.User.Username()) {
		return target{}, errURL
	}
	for _, vs := range query {
		if !clean(strings.Join(vs, "")) {
			return target{}, errURL
		}
	}
	return newTarget(u, hosts, params(query))
}

// clean reports whether s can be sent in a message: UTF-8 without NUL.
func clean(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func newTarget(u *url.URL, hosts string, p params) (t target, err error) {
	password, _ := u.User.Password()
	t.user = cmp.Or(p.take("user"), u.User.Username(), "postgres")
	t.password = cmp.Or(p.take("password"), password)
	t.database = cmp.Or(p.take("dbname"), strings.TrimPrefix(u.Path, "/"), t.user)
	t.appName = cmp.Or(p.take("application_name"), "tenantcontent")
	if !clean(t.password) {
		return target{}, errURL
	}
	if t.hosts, err = newHosts(u, hosts, p); err != nil {
		return target{}, err
	}
	if t.attrs, err = newSessionAttrs(p.take("target_session_attrs")); err != nil {
		return target{}, err
	}
	seconds, err := number("connect_timeout", cmp.Or(p.take("connect_timeout"), "5"), 3600)
	if err != nil {
		return target{}, err
	}
	t.connectTimeout = time.Duration(seconds) * time.Second
	for name, to := range map[string]*time.Duration{
		"read_timeout": &t.readTimeout, "write_timeout": &t.writeTimeout, "long_timeout": &t.longTimeout,
	} {
		if *to, err = duration(name, p.take(name)); err != nil {
			return target{}, err
		}
	}
	if t.maxConns, err = number(
		"pool_max_conns", cmp.Or(p.take("pool_max_conns"), strconv.Itoa(defaultMaxConns)), 10000,
	); err != nil {
		return target{}, err
	}
	t.settings, err = settings(p)
	return t, err
}

func number(name, value string, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("pgsafe: %s in the database URL must be a number from 1 to %d", name, most)
	}
	return n, nil
}

// duration reads seconds, or a time with its unit; 0 for "".
func duration(name, value string) (time.Duration, error) {
	if value == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if n, numberErr := strconv.Atoi(value); numberErr == nil && n <= 3600 {
		d, err = time.Duration(n)*time.Second, nil
	}
	if err != nil || d <= 0 || d > time.Hour {
		return 0, fmt.Errorf(
			"pgsafe: %s in the database URL must be seconds, or a time such as 250ms or 2m, of an hour at most",
			name,
		)
	}
	return d, nil
}

var settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// fixed are settings that pgdriver and this package depend on.
var fixed = []string{"client_encoding", "standard_conforming_strings", "timezone", "datestyle", "bytea_output",
	"client_connection_check_interval"}

// unknown are parameters of libpq that this package does not support. They are not settings of the
// server.
var unknown = []string{"channel_binding", "fallback_application_name", "gssdelegation", "gssencmode",
	"gsslib", "hostaddr", "keepalives", "keepalives_count",
	"keepalives_idle", "keepalives_interval", "krbsrvname", "load_balance_hosts",
	"max_protocol_version", "min_protocol_version", "options", "passfile",
	"replication", "require_auth", "requirepeer", "service",
	"servicefile", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcertmode",
	"sslcompression", "sslcrl", "sslcrldir", "sslnegotiation", "sslpassword", "sslsni", "tcp_user_timeout"}

// harmless are parameters of unknown with values that do not change what this package does.
// Providers show URLs with them.
var harmless = []string{"channel_binding=prefer", "channel_binding=disable",
	"gssencmode=disable", "gssencmode=prefer", "keepalives=1",
	"load_balance_hosts=disable", "sslnegotiation=postgres", "sslcompression=0", "sslsni=1"}

func settings(p params) ([]setting, error) {
	var all []setting
	for name, vs := range p {
		name = strings.ToLower(name)
		if slices.Contains(unknown, name) && !slices.Contains(harmless, name+"="+vs[len(vs)-1]) {
			return nil, fmt.Errorf("pgsafe: %s in the database URL is not known here: leave it out", name)
		} else if slices.Contains(unknown, name) {
			continue
		}
		if !settingName.MatchString(name) {
			return nil, errURL
		}
		if slices.Contains(fixed, name) {
			return nil, fmt.Errorf("pgsafe: the database URL must not set %s", name)
		}
		all = append(all, setting{name, vs[len(vs)-1]})
	}
	slices.SortFunc(all, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}
