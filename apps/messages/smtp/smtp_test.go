package smtp_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	server "github.com/emersion/go-smtp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/apps/messages/smtp"
	"github.com/tenantcontent/tenantcontent/errs"
)

// mailServer is a mail server with the user jo, who has the password secret.
type mailServer struct {
	mu       sync.Mutex
	port     int
	plain    bool // the connection begins without TLS
	roots    *x509.CertPool
	received []*mail.Message
	bodies   []string
	to, from []string
	auth     int
	refuse   error // of the recipient
}

func (m *mailServer) NewSession(*server.Conn) (server.Session, error) { return &session{m: m}, nil }

type session struct {
	m        *mailServer
	loggedIn bool
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "jo" || password != "s:e/cret" {
			return errors.New("no")
		}
		s.loggedIn = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *server.MailOptions) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.from = append(s.m.from, from)
	if s.loggedIn {
		s.m.auth++
	}
	return nil
}

func (s *session) Rcpt(to string, _ *server.RcptOptions) error {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.to = append(s.m.to, to)
	return s.m.refuse
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	e, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(e.Body)
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	s.m.received, s.m.bodies = append(s.m.received, e), append(s.m.bodies, string(body))
	return err
}

func (*session) Reset()        {}
func (*session) Logout() error { return nil }

// serve starts a mail server.
func serve(t *testing.T, security smtp.Security) *mailServer {
	t.Helper()
	is := is.New(t)
	m := &mailServer{roots: x509.NewCertPool(), plain: security != smtp.TLS}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is.NoErr(err)
	certificate, err := x509.ParseCertificate(raw)
	is.NoErr(err)
	m.roots.AddCert(certificate)
	s := server.NewServer(m)
	s.ErrorLog = quiet{}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	m.port = l.Addr().(*net.TCPAddr).Port
	switch security {
	case smtp.TLS:
		l = tls.NewListener(l, config)
	case smtp.StartTLS:
		s.TLSConfig = config
	}
	ended := make(chan struct{})
	go func() { _ = s.Serve(l); close(ended) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return m
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func sender(t *testing.T, m *mailServer, url string, roots *x509.CertPool) *smtp.Sender {
	t.Helper()
	o, err := smtp.Parse(fmt.Sprintf(url, m.port))
	is.New(t).NoErr(err)
	o.RootCAs, o.Timeout = roots, 10*time.Second
	if o.Security == smtp.TLS && m.plain { // which waits for the other
		o.Timeout = 100 * time.Millisecond
	}
	s, err := smtp.New(o)
	is.New(t).NoErr(err)
	return s
}

var hello = messages.Mail{
	ID: "0001", To: "mia@example.com", Subject: "Grüße",
	Text: "Hello\n.\nyou", HTML: "<p>Hello</p>", From: "Sales, Inc. <sales@example.com>",
}

func TestSend(t *testing.T) {
	for url, security := range map[string]smtp.Security{
		"smtp://jo:s%%3Ae%%2Fcret@127.0.0.1:%d?from=Shop%%20%%3Cno-reply@shop.example%%3E": smtp.StartTLS,
		"smtps://jo:s%%3Ae%%2Fcret@127.0.0.1:%d?from=no-reply@shop.example":                smtp.TLS,
		"smtp://127.0.0.1:%d?security=none&from=no-reply@shop.example":                     smtp.None,
	} {
		t.Run(string(security), func(t *testing.T) {
			is, m := is.New(t), serve(t, security)
			s := sender(t, m, url, m.roots)
			is.NoErr(s.Send(t.Context(), hello))
			is.NoErr(s.Send(t.Context(), messages.Mail{
				ID:      "0002",
				To:      "mia@example.com",
				Subject: "Plain",
				Text:    "Only text",
				From:    "Sales",
			}))
			is.NoErr(s.Send(t.Context(), messages.Mail{
				ID:      "0003",
				To:      "mia@example.com",
				Subject: "HTML",
				HTML:    "<b>only</b>",
			}))
			is.Equal(m.to, []string{"mia@example.com", "mia@example.com", "mia@example.com"})
			is.Equal(m.from[0], "no-reply@shop.example")
			is.Equal(m.auth > 0, security != smtp.None)
			h := m.received[0].Header
			is.Equal(h.Get("From"), `"Sales, Inc." <no-reply@shop.example>`)
			is.Equal(h.Get("Reply-To"), "<sales@example.com>")
			is.Equal(h.Get("To"), "<mia@example.com>")
			is.Equal(h.Get("Subject"), "=?UTF-8?q?Gr=C3=BC=C3=9Fe?=")
			is.Equal(h.Get("Message-Id"), "<0001@shop.example>")
			is.True(strings.HasPrefix(h.Get("Content-Type"), "multipart/alternative"))
			is.True(strings.Contains(m.bodies[0], "Hello\r\n.\r\nyou") && strings.Contains(m.bodies[0], "<p>Hello</p>"))
			is.Equal(m.received[1].Header.Get("From"), `"Sales" <no-reply@shop.example>`)
			is.Equal(m.received[1].Header.Get("Reply-To"), "")
			is.True(strings.HasPrefix(m.received[1].Header.Get("Content-Type"), "text/plain"))
			is.True(strings.HasPrefix(m.received[2].Header.Get("Content-Type"), "text/html"))
		})
	}
}

// TestRefusals: what the server refuses for good is errs.Invalid, and everything else is worth
// another try. No error shows the password.
func TestRefusals(t *testing.T) {
	is, m := is.New(t), serve(t, smtp.StartTLS)
	const url = "smtp://jo:s%%3Ae%%2Fcret@127.0.0.1:%d?from=no-reply@shop.example"
	s := sender(t, m, url, m.roots)
	for refusal, code := range map[*server.SMTPError]errs.Code{
		{Code: 550, EnhancedCode: server.EnhancedCode{5, 1, 1}, Message: "no such user"}: errs.Invalid,
		{Code: 451, EnhancedCode: server.EnhancedCode{4, 7, 1}, Message: "greylisted"}:   errs.Unavailable,
	} {
		m.mu.Lock()
		m.refuse = refusal
		m.mu.Unlock()
		err := s.Send(t.Context(), hello)
		is.Equal(errs.CodeOf(err), code)
		is.True(strings.Contains(errs.MessageOf(err), fmt.Sprint(refusal.Code)))
	}
	for name, wrong := range map[string]*smtp.Sender{
		"another certificate":     sender(t, m, url, x509.NewCertPool()),
		"wrong password":          sender(t, m, strings.Replace(url, "cret", "wrong", 1), m.roots),
		"TLS from the first byte": sender(t, m, strings.Replace(url, "smtp:", "smtps:", 1), m.roots),
		"nothing encrypted":       sender(t, serve(t, smtp.None), url, m.roots),
		"nobody":                  sender(t, &mailServer{port: 1}, url, m.roots),
	} {
		err := wrong.Send(t.Context(), hello)
		if errs.CodeOf(err) != errs.Unavailable || strings.Contains(fmt.Sprint(err, errs.MessageOf(err)), "s:e/") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []messages.Mail{
		{ID: "1", To: "mia@example.com\r\nBcc: eve@example.com", Subject: "a", Text: "a"},
		{ID: "1", To: "mia@example.com", Subject: "a\nBcc: eve@example.com", Text: "a"},
		{ID: "1", To: "mia@example.com", Subject: "a", From: "a\r\nBcc: eve@example.com", Text: "a"},
		{ID: "1\r\n", To: "mia@example.com"}, {ID: "1", To: "nobody", Subject: "a"},
	} {
		is.Equal(errs.CodeOf(s.Send(t.Context(), bad)), errs.Invalid)
	}
	is.Equal(len(m.received), 0)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	is.NoErr(err)
	defer func() { _ = silent.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	is.Equal(errs.CodeOf(sender(t, &mailServer{
		port: silent.Addr().(*net.TCPAddr).Port,
	}, url, nil).Send(ctx, hello)), errs.Unavailable)
}

func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"", "mail.example.com", "http://mail.example.com?from=a@b.example", "smtp://?from=a@b.example",
		"smtp://mail", "smtp://mail?from=a", "smtp://mail:99999?from=a@b.example", "smtp://mail:x?from=a@b.example",
		"smtp://jo:hunter2@mail?from=a@b.example&security=none",
		"smtp://jo:hunter2@mail?from=a@b.example&security=maybe",
		"smtp://jo:hunter2@mail?from=a@b.example&tls=no", "smtp://jo:hunter2@mail/x?from=a@b.example",
		"smtp://jo:hunter2%zz@mail?from=a@b.example", "smtp://mail?from=a%0d%0a@b.example",
	} {
		o, err := smtp.Parse(url)
		if err == nil {
			_, err = smtp.New(o)
		}
		if errs.CodeOf(err) != errs.Invalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	o, err := smtp.Parse("smtps://mail.example?from=a@b.example")
	is.New(t).NoErr(err)
	is.New(t).Equal(o, smtp.Options{Host: "mail.example", From: "a@b.example", Security: smtp.TLS})
}
