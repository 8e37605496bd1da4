// Package smtp sends e-mails of apps through a mail server. Hosts and cmd import it for
// tenantcontent.Config.Mail; who does not links no SMTP.
package smtp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	netmail "net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wneessen/go-mail"

	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Security is how the connection to the mail server is encrypted.
type Security string

// The kinds of Security.
const (
	StartTLS Security = "starttls" // a plain connection becomes TLS before anything is sent
	TLS      Security = "tls"      // from the first byte
	None     Security = "none"     // not at all: for a server on the same machine
)

// Options are where and how e-mails are sent. Host and From are required.
type Options struct {
	Host     string
	Port     int    // default 587, with TLS 465
	Username string // "" for no login
	Password string
	From     string         // the server's own address that all e-mails are from, or a name and an address
	Security Security       // default StartTLS
	RootCAs  *x509.CertPool // who signs the mail server's certificate; default the system's
	Timeout  time.Duration  // of one e-mail; default 30 s
}

// Parse reads a URL: smtp://user:password@host:587?from=Acme%20%3Cnoreply@acme.example%3E uses
// STARTTLS, or no encryption with &security=none, and smtps:// uses TLS. Errors: errs.Invalid; none
// shows the password.
func Parse(text string) (Options, error) {
	bad := errs.New(
		errs.Invalid,
		"the URL of the mail server must be like "+
			"smtp://user:password@mail.example.com:587?from=noreply@example.com, with special characters in the "+
			"password percent-encoded",
	)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || u.Opaque != "" ||
		strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return Options{}, bad
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Options{}, bad
	}
	o := Options{
		Host:     u.Hostname(),
		Username: u.User.Username(),
		From:     query.Get("from"),
		Security: Security(query.Get("security")),
	}
	o.Password, _ = u.User.Password()
	if u.Scheme == "smtps" {
		o.Security = TLS
	}
	if port := u.Port(); port != "" {
		if o.Port, err = strconv.Atoi(port); err != nil {
			return Options{}, bad
		}
	}
	for name := range query {
		if name != "from" && name != "security" {
			return Options{}, errs.New(
				errs.Invalid, "the URL of the mail server has the parameters from and security, not %q", name,
			)
		}
	}
	return o, nil
}

// Sender sends e-mails, each on a connection of its own.
type Sender struct {
	o    Options
	from *netmail.Address
}

// New returns a Sender. It does not connect. Errors: errs.Invalid naming what is wrong.
func New(o Options) (*Sender, error) {
	if o.Security == "" {
		o.Security = StartTLS
	}
	if o.Port == 0 {
		if o.Port = 587; o.Security == TLS {
			o.Port = 465
		}
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	from, err := netmail.ParseAddress(o.From)
	switch {
	case o.Host == "":
		return nil, errs.New(errs.Invalid, "the mail server has no host")
	case o.Port < 1 || o.Port > 65535:
		return nil, errs.New(errs.Invalid, "the port of the mail server must be from 1 to 65535")
	case o.Security != StartTLS && o.Security != TLS && o.Security != None:
		return nil, errs.New(errs.Invalid, "security of the mail server must be starttls, tls or none")
	case err != nil || control(o.From):
		return nil, errs.New(
			errs.Invalid,
			"from must be the address that e-mails are from, such as noreply@example.com: add it to the URL of "+
				"the mail server",
		)
	case o.Security == None && o.Username != "" && !loopback(o.Host):
		return nil, errs.New(
			errs.Invalid,
			"a password is not sent to another machine without encryption: leave out security=none",
		)
	}
	return &Sender{o, from}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// control reports whether a text has a character that could begin another header.
func control(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// Send implements messages.Sender. All e-mails are from the server's own address; a name that the
// app has chosen stands before it, and answers go to the address that it has chosen. The Message-ID
// is the same for each try. Errors: errs.Invalid for an e-mail that the server refuses for good, or
// that has a control character in a header; errs.Unavailable if the server cannot be reached,
// refuses the login, or requests another try.
func (s *Sender) Send(ctx context.Context, m messages.Mail) error {
	e, err := s.message(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	options := []mail.Option{
		mail.WithPort(s.o.Port),
		mail.WithTimeout(s.o.Timeout),
		mail.WithTLSConfig(&tls.Config{ServerName: s.o.Host, MinVersion: tls.VersionTLS12, RootCAs: s.o.RootCAs}),
	}
	switch s.o.Security {
	case TLS:
		options = append(options, mail.WithSSL())
	case None:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.o.Username != "" {
		options = append(
			options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.o.Username),
			mail.WithPassword(s.o.Password),
		)
	}
	if s.o.Security != TLS { // go-mail dials TLS by itself, within ctx; afterwards its own time-out alone ends that
		options = append(options, mail.WithDialContextFunc(func(
			dialing context.Context, network, address string,
		) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(dialing, network, address)
			if err == nil {
				context.AfterFunc(ctx, func() { _ = conn.Close() }) // go-mail does not look at ctx any more
			}
			return conn, err
		}))
	}
	client, err := mail.NewClient(s.o.Host, options...)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "The mail server cannot be used.")
	}
	if err := client.DialWithContext(ctx); err != nil {
		return errs.Wrap(errs.Unavailable, err, "The mail server cannot be reached, or refuses the login.")
	}
	err = client.Send(e)
	_ = client.Close()
	return refusal(err)
}

// refusal turns the error of an e-mail that was handed over into one of errs.
func refusal(err error) error {
	var refused *mail.SendError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500:
		return errs.Wrap(errs.Invalid, err, "The mail server refuses the e-mail: %d.", refused.ErrorCode())
	case errors.As(err, &refused) && refused.ErrorCode() > 0:
		return errs.Wrap(
			errs.Unavailable, err, "The mail server does not accept the e-mail at the moment: %d.",
			refused.ErrorCode(),
		)
	}
	return errs.Wrap(errs.Unavailable, err, "The mail server has not accepted the e-mail.")
}

// message writes an e-mail.
func (s *Sender) message(m messages.Mail) (*mail.Msg, error) {
	for field, text := range map[string]string{
		"the address": m.To,
		"the subject": m.Subject,
		"from":        m.From,
		"the id":      m.ID,
	} {
		if control(text) {
			return nil, errs.New(errs.Invalid, "The e-mail has a control character in %s.", field)
		}
	}
	name, answer := s.from.Name, ""
	if m.From != "" {
		name = m.From
		if a, err := netmail.ParseAddress(m.From); err == nil {
			name, answer = a.Name, a.Address
		} else if before, rest, ok := strings.Cut(m.From, "<"); ok { // a name with characters that need quotes
			name, answer = strings.TrimSpace(before), strings.TrimSuffix(rest, ">")
		}
	}
	e := mail.NewMsg()
	_, domain, _ := strings.Cut(s.from.Address, "@")
	e.SetMessageIDWithValue(m.ID + "@" + domain)
	e.SetDate()
	e.Subject(m.Subject)
	e.SetGenHeader(mail.Header("Auto-Submitted"), "auto-generated")
	err := errors.Join(e.FromFormat(name, s.from.Address), e.To(m.To))
	if answer != "" {
		err = errors.Join(err, e.ReplyTo(answer))
	}
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The e-mail has an address that is none.")
	}
	switch {
	case m.HTML == "":
		e.SetBodyString(mail.TypeTextPlain, m.Text)
	case m.Text == "":
		e.SetBodyString(mail.TypeTextHTML, m.HTML)
	default:
		e.SetBodyString(mail.TypeTextPlain, m.Text)
		e.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	}
	return e, nil
}
