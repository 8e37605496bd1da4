package ldap

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxHosts is how many addresses hosts may have.
const maxHosts = 8

// host is a server of the directory.
type host struct {
	member  string // of the configuration that names it
	url     string // scheme, host and port as they are configured
	address string // host and port
	tls     *tls.Config
	denied  bool // connections to it are denied
}

var ports = map[string]string{"ldap": goldap.DefaultLdapPort, "ldaps": goldap.DefaultLdapsPort}

// readHosts reads url and hosts. All of them have the scheme of url, so that what is sent to one is
// as safe as with any other.
func (r *realm) readHosts(m *members) {
	first := m.host("url", m.text("url", "", maxText))
	if m.err != nil {
		return
	}
	r.hosts, r.secure = []host{first}, strings.HasPrefix(first.url, "ldaps:")
	var others []string
	m.read("hosts", &others, "a list of addresses as url is one")
	if len(others) > maxHosts {
		m.bad("hosts", "a list of at most "+strconv.Itoa(maxHosts)+" addresses")
		return
	}
	for _, address := range others {
		if len(address) > maxText {
			m.bad("hosts", "a list of addresses of at most "+strconv.Itoa(maxText)+" bytes each")
			return
		}
		scheme, _, _ := strings.Cut(first.url, "://")
		if !strings.Contains(address, "://") {
			address = scheme + "://" + address
		}
		h := m.host("hosts", address)
		if m.err != nil {
			return
		}
		if !strings.HasPrefix(h.url, scheme+"://") {
			m.bad("hosts", "a list of addresses that begin as url does, with "+scheme+"://")
			return
		}
		if !slices.ContainsFunc(r.hosts, func(other host) bool { return other.same(h.url) }) {
			r.hosts = append(r.hosts, h)
		}
	}
	r.health.until = make([]time.Time, len(r.hosts))
}

// host reads the address of a server.
func (m *members) host(member, text string) host {
	must := func(one, all string) string {
		if member == "url" {
			return one
		}
		return all
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "ldap" && u.Scheme != "ldaps" {
		m.bad(
			member,
			must("an address that begins with ldap:// or ldaps://", "a list of addresses that begin as url does"),
		)
		return host{}
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" ||
		u.Port() != "" && (err != nil || port == 0) {
		m.bad(member, must("an address of a host and perhaps a port alone, such as ldaps://ldap.example.org:636",
			"a list of addresses of a host and perhaps a port alone, such as ldaps://ldap2.example.org:636"))
		return host{}
	}
	return host{
		member:  member,
		url:     (&url.URL{Scheme: u.Scheme, Host: u.Host}).String(),
		address: net.JoinHostPort(u.Hostname(), defaultPort(u)),
		tls:     &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12},
	}
}

// same reports whether an address is that of the host.
func (h host) same(address string) bool {
	return domains.SameServer(h.url, ports) == domains.SameServer(address, ports)
}

func defaultPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "ldaps":
		return goldap.DefaultLdapsPort
	}
	return goldap.DefaultLdapPort
}

// Check implements domains.Realm.
func (r *realm) Check() error {
	for _, h := range r.hosts {
		if h.denied {
			return domains.DeniedAddress(h.member)
		}
	}
	return nil
}

// Redirects implements domains.SecretSender. The password is sent to the servers of url and hosts,
// which startTLS and caCert authenticate.
func (r *realm) Redirects(before domains.Realm) string {
	was, ok := before.(*realm)
	if !ok {
		return "url"
	}
	for _, h := range r.hosts {
		if !slices.ContainsFunc(was.hosts, func(old host) bool { return old.same(h.url) }) {
			return h.member
		}
	}
	switch {
	case was.startTLS && !r.startTLS:
		return "startTLS"
	case was.trusted.Lacks(r.trusted):
		return "caCert"
	}
	return ""
}

// Fail-over. A host that could not be reached is not tried first for deadFor; then one caller tries
// it, while others go on without it. Where there is another host, one has failOver for the
// connection and TLS, as a login ends after 15 seconds.
const (
	deadFor  = 30 * time.Second
	failOver = 3 * time.Second
)

// health records which hosts could not be reached.
type health struct {
	mu    sync.Mutex
	until []time.Time // by host: when it is tried again; zero for one that is well
}

// order returns the hosts in the order in which to try them: those that are well, then the others,
// which may be back.
func (h *health) order(now time.Time) []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	var well, dead []int
	for i, until := range h.until {
		switch {
		case until.IsZero():
			well = append(well, i)
		case now.Before(until):
			dead = append(dead, i)
		default:
			h.until[i] = now.Add(deadFor)
			well = append(well, i)
		}
	}
	return append(well, dead...)
}

// note records whether a host was reached, and reports whether that is new.
func (h *health) note(at int, reached bool, now time.Time) (news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	news = h.until[at].IsZero() != reached
	h.until[at] = time.Time{}
	if !reached {
		h.until[at] = now.Add(deadFor)
	}
	return news
}

// noted records and logs whether one of several hosts was reached.
func (r *realm) noted(ctx context.Context, at int, err error, reached bool) {
	switch news := r.health.note(at, reached, time.Now()) && len(r.hosts) > 1; {
	case news && reached:
		r.log.InfoContext(ctx, "directory host is back", "host", r.hosts[at].url)
	case news:
		r.log.WarnContext(
			ctx, "directory host cannot be used: others are asked first", "host", r.hosts[at].url, "err", err,
		)
	}
}

// errUnreached is what errors of connections and of TLS wrap, after which another host is tried.
type errUnreached struct{ error }

func (e errUnreached) Unwrap() error { return e.error }

// connect returns a connection to the first host that can be reached, with TLS if that is
// configured, that is bound as the service and takes at most most bytes from the directory. A host
// that refuses the bind is not passed over, and while account pauses none is asked. The caller
// closes it.
func (r *realm) connect(ctx context.Context, most int64) (*conn, error) {
	if err := r.account.paused(); err != nil {
		return nil, err
	}
	budget := newBudget(most)
	order := r.health.order(time.Now())
	var sentences []string
	var all []error
	for i, at := range order {
		limit := r.timeout
		if i < len(order)-1 {
			limit = min(limit, failOver)
		}
		c, err := r.connectTo(ctx, &r.hosts[at], limit, budget)
		_, unreached := errors.AsType[errUnreached](err)
		if ctx.Err() != nil {
			return c, err
		}
		r.noted(ctx, at, err, !unreached)
		if !unreached {
			return c, err
		}
		sentences, all = append(sentences, errs.MessageOf(err)), append(all, err)
	}
	if len(all) == 1 {
		return nil, all[0]
	}
	return nil, errs.Wrap(
		errs.Upstream, errors.Join(all...), "No host of the directory can be used. %s",
		strings.Join(sentences, " "),
	)
}

// listed returns the host at the address of a referral, nil if it is not in the configuration. An
// address without a port is that of any listed host with this name: the connection is made as the
// configuration says, whatever the scheme of the referral.
func (r *realm) listed(u *url.URL) *host {
	for i, h := range r.hosts {
		name, port, err := net.SplitHostPort(h.address)
		if err == nil && strings.EqualFold(strings.TrimSuffix(name, "."), strings.TrimSuffix(u.Hostname(), ".")) &&
			(u.Port() == "" || u.Port() == port) {
			return &r.hosts[i]
		}
	}
	return nil
}
