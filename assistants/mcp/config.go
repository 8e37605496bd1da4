package mcp

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// config is the configuration of a skill.
type config struct {
	URL     string            // http or https
	Tools   []string          // names of the server's tools that the assistant may use
	Headers map[string]string // ${NAME} in a value is a secret of the assistant
	Confirm string            // changes, always or never
}

// The most that a configuration may have.
const (
	maxURL     = 2048
	maxTools   = 64
	maxName    = 128 // characters of the name of a tool
	maxHeaders = 20
)

// When calls are confirmed.
const (
	confirmChanges = "changes"
	confirmAlways  = "always"
	confirmNever   = "never"
)

// accept implements assistants.SkillType.Accept.
func (s *skill) accept(raw json.RawMessage) error {
	_, err := s.read(raw)
	return err
}

// sends implements assistants.SkillType.Sends: the headers have the secrets.
func (s *skill) sends(raw json.RawMessage) (to string, secrets []string) {
	c, err := s.read(raw)
	if err != nil { // open refuses it, too
		return "", nil
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", nil
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	for _, value := range c.Headers {
		for _, r := range reference.FindAllStringSubmatch(value, -1) {
			secrets = append(secrets, r[1])
		}
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port), secrets
}

// read reads a configuration. Errors: errs.Invalid naming the member.
func (s *skill) read(raw json.RawMessage) (c config, err error) {
	c.Confirm = confirmChanges
	invalid := func(format string, args ...any) { // the first one counts
		if err == nil {
			err = errs.New(errs.Invalid, format, args...)
		}
	}
	decode := func(name string, value json.RawMessage, to any, what string) {
		if string(value) == "null" || json.Unmarshal(value, to) != nil {
			invalid("config.%s must be %s", name, what)
		}
	}
	seen := map[string]bool{}
	object := rawjson.Each(raw, func(name string, value json.RawMessage) {
		if seen[name] {
			invalid("config.%.100s is there twice", name)
		}
		seen[name] = true
		switch name {
		case "url":
			decode(name, value, &c.URL, "a text: the address of an MCP server, such as https://mcp.example.com/mcp")
		case "tools":
			decode(name, value, &c.Tools, "a list of names of the server's tools")
		case "headers":
			decode(name, value, &c.Headers, `an object of texts, such as {"Authorization": "Bearer ${TOKEN}"}`)
		case "confirm":
			decode(name, value, &c.Confirm, "changes, always or never")
		default:
			invalid("config.%.100s is unknown: a skill of the type mcp has url, tools, headers and confirm", name)
		}
	})
	if !object {
		invalid("config must be a JSON object")
	}
	if err == nil {
		err = s.check(c)
	}
	return c, err
}

// check checks the members of a configuration. Errors: errs.Invalid naming the member.
func (s *skill) check(c config) error {
	if err := s.checkURL(c.URL); err != nil {
		return err
	}
	if len(c.Tools) == 0 || len(c.Tools) > maxTools {
		return errs.New(
			errs.Invalid,
			"config.tools must name 1 to %d tools of the server: others do not exist for the assistant",
			maxTools,
		)
	}
	for i, name := range c.Tools {
		switch {
		case name == "" || len([]rune(name)) > maxName || strings.ContainsFunc(name, func(r rune) bool {
			return r <= ' ' || r == 0x7f
		}):
			return errs.New(errs.Invalid, "config.tools[%d] must have 1 to %d characters without spaces", i, maxName)
		case slices.Contains(c.Tools[:i], name):
			return errs.New(errs.Invalid, "config.tools[%d]: %s is there twice", i, name)
		}
	}
	if !slices.Contains([]string{confirmChanges, confirmAlways, confirmNever}, c.Confirm) {
		return errs.New(errs.Invalid, "config.confirm must be changes, always or never")
	}
	return checkHeaders(c.Headers)
}

// checkURL checks the address of a server. Errors: errs.Invalid.
func (s *skill) checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" ||
		len(address) > maxURL:
		return errs.New(
			errs.Invalid,
			"config.url must be the address of an MCP server, such as https://mcp.example.com/mcp",
		)
	case u.User != nil || u.Fragment != "":
		return errs.New(
			errs.Invalid,
			"config.url must have no user, password or fragment: what the server must keep secret belongs into headers",
		)
	case u.Scheme == "http" && len(s.AllowNetworks) == 0:
		return errs.New(
			errs.Invalid,
			"config.url must begin with https://, unless the operator of this server allows http in networks of "+
				"its own (TENANTCONTENT_ALLOW_NETWORKS, Options.AllowNetworks)",
		)
	case u.Scheme == "http" && s.plain(address):
		return errs.New(
			errs.Invalid,
			"config.url must begin with https://: the operator of this server allows http for other addresses "+
				"alone (TENANTCONTENT_ALLOW_NETWORKS, Options.AllowNetworks)",
		)
	case s.denied(address):
		return errs.New(
			errs.Invalid,
			"config.url: connections to %.100s are denied by the configuration of this server. Its operator names "+
				"the networks of its own where MCP servers may be: TENANTCONTENT_ALLOW_NETWORKS, Options.AllowNetworks",
			u.Hostname(),
		)
	}
	return nil
}

// ownHeaders are the headers that HTTP and the protocol set; those that begin with mcp- are the
// protocol's, too.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length",
	"Content-Type", "Expect", "Host", "Keep-Alive", "Last-Event-Id", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// reference is a secret in a value: the dollar sign of any other text is one.
var reference = regexp.MustCompile(`\$\{([^}]*)\}?`)

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkHeaders checks the headers of a configuration. Errors: errs.Invalid naming the member.
func checkHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return errs.New(errs.Invalid, "config.headers must be at most %d", maxHeaders)
	}
	for name, value := range headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return errs.New(errs.Invalid, "config.headers: %.100q is not the name of a header", name)
		case slices.Contains(ownHeaders, canonical) || strings.HasPrefix(canonical, "Mcp-"):
			return errs.New(errs.Invalid, "config.headers: %.100s is set by the protocol itself", name)
		case !httpguts.ValidHeaderFieldValue(value):
			return errs.New(errs.Invalid, "config.headers.%.100s must be a text of one line", name)
		}
		for other := range headers {
			if other != name && http.CanonicalHeaderKey(other) == canonical {
				return errs.New(errs.Invalid, "config.headers: %.100s is there twice", name)
			}
		}
		references := reference.FindAllStringSubmatch(value, -1)
		for _, r := range references {
			if !secretName.MatchString(r[1]) || !strings.HasSuffix(r[0], "}") {
				return errs.New(
					errs.Invalid,
					"config.headers.%.100s: %.100q must be ${NAME} with the name of a secret of the assistant",
					name, r[0],
				)
			}
		}
		member, err := json.Marshal(map[string]string{canonical: value})
		if err == nil && len(references) == 0 && string(entity.MaskSecrets(member)) != string(member) {
			return errs.New(
				errs.Invalid,
				"config.headers.%.100s must take its value from a secret of the assistant, as in \"Bearer "+
					"${TOKEN}\": everyone who may edit the assistant can read config",
				name,
			)
		}
	}
	return nil
}

// header returns the headers with the secrets in their places, and the values of these. Errors:
// errs.Unavailable naming a secret that there is not, or that fits in no header.
func (c config) header(secrets map[string]string) (header http.Header, used []string, err error) {
	header = http.Header{}
	for name, value := range c.Headers {
		text := reference.ReplaceAllStringFunc(value, func(r string) string {
			key := r[2 : len(r)-1]
			secret := secrets[key]
			switch {
			case secret == "":
				err = errs.New(
					errs.Unavailable, "The assistant has no secret %s, which the header %s needs.", key, name,
				)
			case !httpguts.ValidHeaderFieldValue(secret):
				err = errs.New(
					errs.Unavailable,
					"The secret %s of the assistant cannot be sent in the header %s: it has characters that "+
						"headers do not have.",
					key, name,
				)
			}
			used = append(used, secret)
			return secret
		})
		header.Set(name, text)
	}
	return header, used, err
}

// minRedacted is the length of the shortest secret that is looked for in what a server sends.
const minRedacted = 4

// redactor returns a function that masks secrets in a text of a server.
func redactor(secrets []string) func(string) string {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minRedacted {
			pairs = append(pairs, secret, entity.Mask)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}
