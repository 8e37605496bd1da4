package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// made is a certificate with its key.
type made struct {
	der  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (m made) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.der}))
}

// issue makes a certificate. by is the authority; nil: it is self-signed.
func issue(t *testing.T, by *made, change func(*x509.Certificate)) made {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.New(t).NoErr(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7),
		Subject:      pkix.Name{CommonName: "ldap.example.org"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	if change != nil {
		change(template)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	is.New(t).NoErr(err)
	cert, _ := x509.ParseCertificate(der)
	return made{der, cert, key}
}

func authority(t *testing.T) made {
	return issue(t, nil, func(c *x509.Certificate) {
		c.Subject.CommonName, c.IsCA, c.BasicConstraintsValid = "Example CA", true, true
	})
}

// negative returns a certificate with the serial number -7. Libraries do not make such a
// certificate. Its signature does not match, which a parser does not check.
func negative(t *testing.T) made {
	m := issue(t, nil, nil)
	at := strings.Index(string(m.der), "\x02\x01\x07") // INTEGER 7
	is.New(t).True(at > 0)
	m.der[at+2] = 0xf9
	return m
}

func TestRead(t *testing.T) {
	a, b := authority(t), authority(t)
	joined := strings.ReplaceAll(a.pem(), "\n", " ")
	for name, text := range map[string]string{
		"one":             a.pem(),
		"byte order mark": "\ufeff" + a.pem(),
		"Windows":         strings.ReplaceAll("\ufeff# of the forest\n"+a.pem(), "\n", "\r\n"),
		"bag attributes": "Bag Attributes\n    localKeyID: 01 \nsubject=CN = Example - CA\n\nissuer=/CN=-----\n" +
			a.pem() + "-- end --\n",
		"indented":      "  caCert: |\n    " + strings.ReplaceAll(a.pem(), "\n", "\n    "),
		"one line":      joined,
		"escaped twice": strings.ReplaceAll(a.pem(), "\n", `\n`),
		"parameters":    "-----BEGIN DH PARAMETERS-----\nMAYCAQ==\n-----END DH PARAMETERS-----\n" + a.pem(),
		"old name":      strings.ReplaceAll(a.pem(), "CERTIFICATE", "X509 CERTIFICATE"),
		"two":           "first:\n" + a.pem() + "second:" + b.pem(),
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Read("caCert", text)
			is.NoErr(err)
			is.Equal(got.DER[0], string(a.der))
			_, err = a.cert.Verify(x509.VerifyOptions{Roots: got.Pool})
			is.NoErr(err)
			_, err = b.cert.Verify(x509.VerifyOptions{Roots: got.Pool})
			is.Equal(err == nil, name == "two")
			is.Equal(len(got.DER) == 2, name == "two")
		})
	}
	got, err := Read("caCert", "")
	is.New(t).NoErr(err)
	is.New(t).True(got.Pool == nil && got.DER == nil)
}

func TestReadRefuses(t *testing.T) {
	good := authority(t).pem()
	bare := base64.StdEncoding.EncodeToString(authority(t).der)
	for text, want := range map[string]string{
		bare:     "with -----BEGIN CERTIFICATE-----",
		"no pem": "with -----BEGIN CERTIFICATE-----",
		" ":      "with -----BEGIN CERTIFICATE-----",
		good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----":          "number 2 cannot be read",
		good + "-----BEGIN CERTIFICATE-----\nA*A\n-----END CERTIFICATE-----":           "number 2 is incomplete",
		strings.Replace(good, "-----END CERTIFICATE-----", "", 1):                      "number 1 is incomplete",
		strings.Replace(good, "-----END CERTIFICATE", "-----END TRUST", 1):             "number 1 is incomplete",
		good + "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----":  "a private key",
		good + "-----BEGIN PRIVATE KEY-----\nProc-Type: 4\nAAAA":                       "a private key",
		"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----": "a CERTIFICATE REQUEST is none",
		"-----BEGIN PKCS7-----\nAAAA\n-----END PKCS7-----":                             "a PKCS7 is none",
		"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----":                       "with -----BEGIN CERTIFICATE-----",
		negative(t).pem():               "that of number 1 is negative",
		strings.Repeat("x", MaxBytes+1): "at most 262144 bytes",
	} {
		_, err := Read("caCert", text)
		if errs.CodeOf(err) != errs.Invalid || !strings.HasPrefix(errs.MessageOf(err), "caCert must ") ||
			!strings.Contains(errs.MessageOf(err), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func TestLacks(t *testing.T) {
	is := is.New(t)
	a, b := Trusted{DER: []string{"a"}}, Trusted{DER: []string{"a", "b"}}
	is.True(a.Lacks(b))
	is.True(!b.Lacks(a))
	is.True(!a.Lacks(Trusted{}))
	is.True(Trusted{}.Lacks(a))
}

// handshake returns the error of a client that connects to host with the certificate of a server.
func handshake(t *testing.T, server *tls.Config, client *tls.Config) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if server == nil {
			_, _ = c.Write([]byte("220 not TLS at all\r\n"))
			return
		}
		_ = tls.Server(c, server).Handshake()
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	is.New(t).NoErr(err)
	defer raw.Close()
	return tls.Client(raw, client).Handshake()
}

// TestExplain causes each error with a real handshake, so that a change of Go's error texts is
// noticed.
func TestExplain(t *testing.T) {
	ca := authority(t)
	with := func(change func(*x509.Certificate)) tls.Certificate {
		m := issue(t, &ca, change)
		return tls.Certificate{Certificate: [][]byte{m.der}, PrivateKey: m.key}
	}
	own, bad := issue(t, nil, nil), negative(t)
	noCA := issue(t, &ca, func(c *x509.Certificate) { c.Subject.CommonName, c.BasicConstraintsValid = "No CA", true })
	below := issue(t, &noCA, nil)
	for _, c := range []struct {
		name   string
		server *tls.Config
		host   string
		trusts bool // the client trusts ca
		want   []string
	}{
		{"unknown authority", &tls.Config{Certificates: []tls.Certificate{with(nil)}}, "localhost", false,
			[]string{`"CN=ldap.example.org"`, `signed by "CN=Example CA"`, "set caCert"}},
		{"signed by itself",
			&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{own.der}, PrivateKey: own.key}}},
			"localhost", true,
			[]string{"signed by itself", "set caCert to this certificate"}},
		{"no SAN", &tls.Config{Certificates: []tls.Certificate{with(func(c *x509.Certificate) {
			c.DNSNames = nil
		})}}, "ldap.example.org", true,
			[]string{"no subject alternative name (SAN)", "DNS:ldap.example.org"}},
		{
			"another name", &tls.Config{Certificates: []tls.Certificate{with(nil)}}, "ldap2.example.org", true,
			[]string{`is for "localhost", not for "ldap2.example.org"`},
		},
		{
			"an address", &tls.Config{Certificates: []tls.Certificate{with(nil)}}, "127.0.0.1", true,
			[]string{`is for "localhost", not for "127.0.0.1"`, "IP:127.0.0.1"},
		},
		{"expired", &tls.Config{Certificates: []tls.Certificate{with(func(c *x509.Certificate) {
			c.NotAfter = time.Date(2020, 1, 2, 3, 4, 0, 0, time.UTC)
		})}},
			"localhost", true, []string{"has expired on 2020-01-02 03:04 UTC"}},
		{"not yet", &tls.Config{Certificates: []tls.Certificate{with(func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(30 * time.Minute)
		})}},
			"localhost", true, []string{"is not valid before", "clocks"}},
		{"for clients", &tls.Config{Certificates: []tls.Certificate{with(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})}}, "localhost", true, []string{"serverAuth"}},
		{"signed by no authority",
			&tls.Config{
				Certificates: []tls.Certificate{{Certificate: [][]byte{below.der, noCA.der}, PrivateKey: below.key}},
			},
			"localhost", true,
			[]string{"No CA", "basic constraint CA:TRUE"}},
		{"negative serial number",
			&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{bad.der}, PrivateKey: bad.key}}},
			"localhost", true,
			[]string{"negative serial number", "-set_serial"}},
		{"not a certificate",
			&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{{0x30, 0}}, PrivateKey: bad.key}}},
			"localhost", true,
			[]string{"cannot be read"}},
		{"old TLS",
			&tls.Config{
				Certificates: []tls.Certificate{with(nil)},
				MinVersion:   tls.VersionTLS10,
				MaxVersion:   tls.VersionTLS11,
			},
			"localhost", true,
			[]string{"TLS 1.2"}},
		{"asks for a certificate",
			&tls.Config{
				Certificates: []tls.Certificate{with(nil)},
				MaxVersion:   tls.VersionTLS12,
				ClientAuth:   tls.RequireAnyClientCert,
			},
			"localhost", true,
			[]string{"must not ask for a certificate"}},
		{"no TLS", nil, "localhost", true, []string{"does not speak TLS at this port"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := &tls.Config{ServerName: c.host, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
			if c.trusts {
				client.RootCAs.AddCert(ca.cert)
			}
			err := handshake(t, c.server, client)
			got := Explain(err)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q\nhas no %q; the error is %v", got, want, err)
				}
			}
			is.New(t).True(!strings.HasSuffix(got, "."))
		})
	}
}

// TestExplainBounds: texts of a server's certificate are quoted and short.
func TestExplainBounds(t *testing.T) {
	is := is.New(t)
	ca := authority(t)
	m := issue(t, &ca, func(c *x509.Certificate) {
		c.Subject.CommonName, c.DNSNames = strings.Repeat("\u202e\n", 5000), nil
		for range 500 {
			c.DNSNames = append(c.DNSNames, strings.Repeat("x", 250))
		}
	})
	for _, got := range []string{
		Explain(x509.HostnameError{Certificate: m.cert, Host: "a"}), Explain(x509.UnknownAuthorityError{Cert: m.cert}),
		Explain(x509.CertificateInvalidError{Cert: m.cert, Reason: x509.Expired}),
	} {
		is.True(len(got) < 4000)
		is.True(!strings.ContainsAny(got, "\n\u202e"))
	}
	is.Equal(Explain(nil), "")
	_, err := net.Dial("tcp", "127.0.0.1:1")
	is.Equal(Explain(err), "")
}

func TestTransport(t *testing.T) {
	is := is.New(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	ask := func(way http.RoundTripper) error {
		answer, err := (&http.Client{Transport: way}).Get(server.URL)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	trusted, err := Read("caCert", string(pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: server.Certificate().Raw,
	})))
	is.NoErr(err)
	host := &http.Transport{}
	for _, next := range []http.RoundTripper{nil, host} {
		way, err := trusted.Transport(next, "caCert")
		is.NoErr(err)
		is.NoErr(ask(way))
		is.True(!way.(*http.Transport).TLSClientConfig.InsecureSkipVerify)
	}
	ours := egress.Client(nil)
	way, err := trusted.Transport(ours.Transport, "caCert")
	is.NoErr(err)
	is.NoErr(ask(way))
	_, traced := way.(egress.Transport)
	is.True(traced) // it sends the trace context all the same
	is.True(ask(ours.Transport) != nil)
	is.True(host.TLSClientConfig == nil || host.TLSClientConfig.RootCAs == nil) // the host's is not changed
	none, err := Trusted{}.Transport(nil, "caCert")
	is.NoErr(err)
	is.True(ask(none) != nil)
	_, err = trusted.Transport(roundTrips{}, "caCert")
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.HasPrefix(errs.MessageOf(err), "caCert must be left out"))
	same, err := Trusted{}.Transport(roundTrips{}, "caCert")
	is.NoErr(err)
	is.Equal(same, http.RoundTripper(roundTrips{}))
}

// roundTrips is a RoundTripper of a host.
type roundTrips struct{}

func (roundTrips) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errs.New(errs.Upstream, "no")
}
