package quickjs

import (
	"encoding/hex"
	"encoding/json"
	"net/url"

	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/encoding/unicode"
)

// nativeURL parses a URL, and a base if it is not undefined, and returns its parts as JSON, or
// undefined if it is none.
func nativeURL(m *vm, in arguments) value {
	var u *whatwg.Url
	var err error
	if isUndefined(in.all[1]) {
		u, err = whatwg.Parse(in.s[0])
	} else {
		base, ok := m.stringOf(in.all[1])
		if !ok {
			return exception()
		}
		u, err = whatwg.ParseRef(base, in.s[0])
	}
	if err != nil {
		return undefined()
	}
	return m.urlParts(u)
}

// nativeURLSet changes a part: href, name, value. It returns the parts as JSON.
func nativeURLSet(m *vm, in arguments) value {
	u, err := whatwg.Parse(in.s[0])
	if err != nil {
		return undefined()
	}
	set := map[string]func(string){
		"protocol": u.SetProtocol, "username": u.SetUsername,
		"password": u.SetPassword, "host": u.SetHost, "hostname": u.SetHostname,
		"port": u.SetPort, "pathname": u.SetPathname, "search": u.SetSearch, "hash": u.SetHash,
	}
	set[in.s[1]](in.s[2])
	return m.urlParts(u)
}

func (m *vm) urlParts(u *whatwg.Url) value {
	origin := "null"
	switch u.Scheme() {
	case "http", "https", "ws", "wss", "ftp":
		origin = u.Protocol() + "//" + u.Host()
	case "blob":
		if inner, err := url.Parse(u.Pathname()); err == nil && (inner.Scheme == "http" || inner.Scheme == "https") {
			origin = inner.Scheme + "://" + inner.Host
		}
	}
	parts, _ := json.Marshal(map[string]string{ // strings can always be encoded
		"href": u.Href(false), "origin": origin,
		"protocol": u.Protocol(), "username": u.Username(), "password": u.Password(),
		"host": u.Host(), "hostname": u.Hostname(), "port": u.Port(),
		"pathname": u.Pathname(), "search": u.Search(), "hash": u.Hash(),
	})
	return m.newString(string(parts))
}

// nativeUnescape replaces percent signs and the two digits after them by bytes; what is not UTF-8
// then becomes U+FFFD.
func nativeUnescape(m *vm, in arguments) value {
	s := in.s[0]
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, c...)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	b, _ = unicode.UTF8.NewDecoder().Bytes(b)
	return m.newString(string(b))
}
