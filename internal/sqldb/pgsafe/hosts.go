package pgsafe

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// host is one of the servers in a URL.
type host struct {
	network, addr string
	tls           *tls.Config // nil: no TLS
}

// cutHosts removes a list of several hosts, which package url cannot parse, from a URL. rest keeps
// the first host.
func cutHosts(raw string) (rest, list string) {
	scheme, after, ok := strings.Cut(raw, "://")
	if !ok {
		return raw, ""
	}
	end := strings.IndexAny(after, "/?#")
	if end < 0 {
		end = len(after)
	}
	at := strings.LastIndex(after[:end], "@") + 1
	list = after[at:end]
	first, _, several := strings.Cut(list, ",")
	if !several {
		return raw, ""
	}
	return scheme + "://" + after[:at] + first + after[end:], list
}

// newHosts returns the hosts of a URL in their order; list contains them if there are several. As
// in libpq, host and port of the query take precedence over those of the address, and a single port
// applies to all hosts.
func newHosts(u *url.URL, list string, p params) ([]host, error) {
	var names, ports []string
	if list == "" {
		names, ports = []string{u.Hostname()}, []string{u.Port()}
	} else {
		for part := range strings.SplitSeq(list, ",") {
			one, err := url.Parse("postgres://" + part)
			if err != nil || one.Host != part {
				return nil, errURL
			}
			names, ports = append(names, one.Hostname()), append(ports, one.Port())
		}
	}
	if of := p.take("host"); of != "" {
		names = strings.Split(of, ",")
		if len(ports) != len(names) {
			ports = ports[:1]
		}
	}
	if of := p.take("port"); of != "" {
		ports = strings.Split(of, ",")
	}
	if len(ports) != len(names) && len(ports) != 1 {
		return nil, errors.New("pgsafe: the database URL names another number of ports than of hosts: want one " +
			"for each, or one for all")
	}
	hosts := make([]host, len(names))
	for i, name := range names {
		if name == "" {
			name = "localhost"
		}
		text := ports[min(i, len(ports)-1)]
		if text == "" {
			text = "5432"
		}
		port, err := number("port", text, 65535)
		if err != nil {
			return nil, err
		}
		hosts[i].network, hosts[i].addr = address(name, port)
		if hosts[i].tls, err = tlsConfig(hosts[i].network, name, maps.Clone(p)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"sslmode", "sslrootcert", "sslcert", "sslkey"} {
		p.take(name)
	}
	return hosts, nil
}

// address returns the network and address to dial. As in libpq it is the socket file in the
// directory if the host is a directory.
func address(host string, port int) (network, addr string) {
	if !strings.HasPrefix(host, "/") {
		return "tcp", net.JoinHostPort(host, strconv.Itoa(port))
	}
	if strings.HasPrefix(path.Base(host), ".s.PGSQL.") {
		return "unix", host
	}
	return "unix", path.Join(host, ".s.PGSQL."+strconv.Itoa(port))
}

// sessionAttrs is the kind of servers to connect to, as named by libpq. The empty one, for a URL
// without target_session_attrs, excludes standbys, because their rows may be old. It includes a
// server with read-only transactions only if all servers are such.
type sessionAttrs string

const preferStandby sessionAttrs = "prefer-standby"

func newSessionAttrs(text string) (sessionAttrs, error) {
	switch text {
	case "", "any", "read-write", "read-only", "primary", "standby", string(preferStandby):
		return sessionAttrs(text), nil
	}
	return "", errors.New("pgsafe: target_session_attrs in the database URL must be any, read-write, read-only, " +
		"primary, standby or prefer-standby")
}

// passes returns the kinds of servers to look for, one after the other.
func (a sessionAttrs) passes() []sessionAttrs {
	switch a {
	case preferStandby:
		return []sessionAttrs{"standby", "any"}
	case "":
		return []sessionAttrs{"read-write", "primary"}
	}
	return []sessionAttrs{a}
}

// wrongServer is the error for a server of a kind that the URL excludes.
type wrongServer struct{ addr, is string }

func (w wrongServer) Error() string {
	return fmt.Sprintf("pgsafe: connect to %s: this PostgreSQL %s", w.addr, w.is)
}

// SQLState returns cannot_connect_now, for package bunx.
func (wrongServer) SQLState() string { return "57P03" }

// check returns an error if a server is of another kind.
func (a sessionAttrs) check(addr string, s serverState) error {
	switch {
	case s.standby && (a == "read-write" || a == "primary"):
		return wrongServer{
			addr,
			"is a standby, which takes no writes: name the primary in the database URL, or promote this one",
		}
	case s.readOnly && a == "read-write":
		return wrongServer{addr, "can only be read: its transactions are read-only by default"}
	case !s.standby && a == "standby":
		return wrongServer{addr, "is not a standby"}
	case !s.standby && !s.readOnly && a == "read-only":
		return wrongServer{addr, "can be written"}
	}
	return nil
}

// serverState is the state that a server reports when a connection is made.
type serverState struct{ standby, readOnly bool }
