// Package mcp is the skill of assistants to use the tools of a remote MCP server (Model Context
// Protocol, streamable HTTP).
//
// A program that does not import it does not link the protocol's SDK. The program in cmd imports
// it; other hosts put New into Config.Skills.
package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// Options configure the skill. The zero value reaches the servers of the internet with https.
type Options struct {
	// AllowNetworks are networks that are not of the internet where servers may be all the same,
	// such as 10.1.2.0/24. The addresses in them may be called with http, too.
	AllowNetworks []netip.Prefix
	// DenyNetworks are where no connection is made to, also if AllowNetworks has them: see
	// tenantcontent.Config. nil is where clouds hand out a machine's credentials.
	DenyNetworks []netip.Prefix
	// Log receives the failures of servers; default slog.Default.
	Log *slog.Logger

	Connect time.Duration // to connect and list the tools; default 10 seconds
	Call    time.Duration // of a call; default 1 minute
	// MaxBytes bounds what a server sends for one call, unpacked; default 2 MiB. Twice as many may
	// come while connecting.
	MaxBytes int64
}

// skill is the Skill of New.
type skill struct {
	Options
	https, http   *http.Client
	denied, plain func(url string) bool // with https and with http
}

// New returns the skill mcp.
func New(o Options) conversation.Skill {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Connect, o.Call, o.MaxBytes = cmp.Or(
		o.Connect, 10*time.Second,
	), cmp.Or(o.Call, time.Minute), cmp.Or(o.MaxBytes, 2<<20)
	https := egress.Denials(egress.Private(), o.AllowNetworks, o.DenyNetworks)
	plain := egress.Denials(
		[]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}, o.AllowNetworks,
		o.DenyNetworks,
	)
	s := &skill{
		Options: o,
		https:   client(https),
		http:    client(plain),
		denied:  egress.Denied(https),
		plain:   egress.Denied(plain),
	}
	return conversation.Skill{
		SkillType: assistants.SkillType{
			Type: "mcp", Name: "Tools of an MCP server",
			Description: "Uses tools of a remote server that speaks the Model Context Protocol.",
			Accept:      s.accept, Sends: s.sends,
		},
		Open: s.open,
	}
}

// client returns a client that follows no redirects, so that headers with secrets reach one host.
func client(denied []netip.Prefix) *http.Client {
	c := egress.Client(denied)
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if t, ok := c.Transport.(egress.Transport); ok {
		t.MaxResponseHeaderBytes = 64 << 10
	}
	return c
}

// open implements conversation.Skill.Open.
func (s *skill) open(ctx context.Context, u conversation.Use) ([]chat.Tool, func(), error) {
	c, err := s.read(u.Skill.Config)
	if err != nil {
		return nil, nil, err
	}
	header, secrets, err := c.header(u.Secrets)
	if err != nil {
		return nil, nil, err
	}
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil, nil, err
	}
	from := s.https
	if address.Scheme == "http" {
		from = s.http
	}
	server := &server{
		skill: s, config: c,
		redact: redactor(secrets),
		id:     rand.Text(),
		link:   &link{base: from.Transport, scheme: address.Scheme, host: address.Host, header: header},
		log: s.Log.With(
			"tenant", u.Assistant.Tenant, "assistant", u.Assistant.ID, "skill", u.Skill.Name, "host",
			address.Host,
		),
	}
	server.client = &http.Client{Transport: server.link, CheckRedirect: from.CheckRedirect}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Connect, errSlow)
	defer cancel()
	listed, err := server.list(ctx)
	if err != nil {
		server.close()
		return nil, nil, server.explain(ctx, "list its tools", err)
	}
	tools, err := server.tools(u.Skill.Name, listed)
	server.forget()
	return tools, server.close, err
}
