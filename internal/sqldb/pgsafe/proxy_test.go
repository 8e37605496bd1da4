package pgsafe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
)

// proxy forwards connections between the driver and the server.
type proxy struct {
	url       string
	mute, cut atomic.Bool // drop the server's answers; close the connection at the next one, once
	accepted  atomic.Int32

	certs    []tls.Certificate // when set, the proxy is a server with TLS
	upstream target
	mu       sync.Mutex
	conns    []net.Conn
}

func newProxy(t *testing.T, serverURL string, cert ...tls.Certificate) *proxy {
	is := is.New(t)
	upstream, err := parseURL(serverURL)
	is.NoErr(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	u, err := url.Parse(serverURL)
	is.NoErr(err)
	q := u.Query()
	q.Del("host")
	q.Del("port")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	p := &proxy{url: u.String(), upstream: upstream, certs: cert}
	t.Cleanup(func() { l.Close(); p.closeAll() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.accepted.Add(1)
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	if p.certs != nil {
		if _, err := io.ReadFull(c, make([]byte, 8)); err != nil { // the request for TLS
			return
		}
		_, _ = c.Write([]byte{'S'})
		c = tls.Server(c, &tls.Config{Certificates: p.certs})
	}
	s, err := net.Dial(p.upstream.hosts[0].network, p.upstream.hosts[0].addr)
	if err != nil {
		c.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, c, s)
	p.mu.Unlock()
	go func() { _, _ = io.Copy(s, c); s.Close() }()
	_, _ = io.Copy(filter{p, c}, s)
	c.Close()
}

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// filter forwards the server's answers to the client.
type filter struct {
	p *proxy
	net.Conn
}

func (f filter) Write(b []byte) (int, error) {
	switch {
	case f.p.mute.Load():
		return len(b), nil
	case f.p.cut.CompareAndSwap(true, false):
		return 0, errors.New("cut")
	}
	return f.Conn.Write(b)
}

func TestNetworkClosesIdleConnection(t *testing.T) {
	p := newProxy(t, server(t))
	db := openSafe(t, p.url, Config{})
	for range 3 {
		is.New(t).Equal(one[int](t, db, "select $1::int", 1), 1)
		p.closeAll()
		time.Sleep(250 * time.Millisecond)
	}
	is.New(t).Equal(p.accepted.Load(), int32(3))
}

func TestNoRetryAfterSending(t *testing.T) {
	is, u := is.New(t), inSchema(t)
	admin := openSafe(t, u, Config{})
	exec(t, admin, "create table t (k int)")
	p := newProxy(t, u)
	for i, args := range [][]any{nil, {1}} {
		db := openSafe(t, p.url, Config{})
		insert := "insert into t values (1)" + strings.Repeat(", ($1)", len(args))
		exec(t, db, insert, args...) // prepare it
		p.cut.Store(true)
		_, err := db.Exec(insert, args...)
		is.True(Unavailable(err)) // it is not known whether it was executed
		is.True(!p.cut.Load())
		is.Equal(one[int](t, admin, "select count(*) from t"), []int{2, 6}[i]) // twice, not three times
	}
}

func TestConnectTimeout(t *testing.T) {
	is, p := is.New(t), newProxy(t, server(t))
	p.mute.Store(true)
	start := time.Now()
	err := openSafe(t, with(p.url, "connect_timeout=1"), Config{}).Ping()
	is.True(Unavailable(err))
	is.True(time.Since(start) < defaultConnectTimeout)
	err = openSafe(t, p.url, Config{}).PingContext(soon(t))
	is.True(errors.Is(err, context.DeadlineExceeded))
	is.True(!Unavailable(err))
}

// certificate makes a self-signed certificate for name and writes it to a file.
func certificate(t *testing.T, name string) (tls.Certificate, string) {
	is := is.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(name); ip != nil {
		c.DNSNames, c.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	is.NoErr(err)
	file := filepath.Join(t.TempDir(), "root.pem")
	is.NoErr(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func TestTLS(t *testing.T) {
	right, rightFile := certificate(t, "127.0.0.1")
	other, otherFile := certificate(t, "db.example")
	for _, c := range []struct {
		cert        tls.Certificate
		mode, trust string
		ok          bool
	}{
		{right, "verify-full", rightFile, true},
		{right, "verify-full", otherFile, false},
		{other, "verify-full", otherFile, false}, // another name
		{right, "verify-full", "", false},        // not in the system's roots
		{other, "verify-ca", otherFile, true},
		{other, "verify-ca", rightFile, false},
		{other, "verify-ca", "", false},
		{other, "require", "", true},
		{other, "require", rightFile, false},
	} {
		t.Run(c.mode, func(t *testing.T) {
			is, p := is.New(t), newProxy(t, server(t), c.cert)
			u, err := url.Parse(p.url)
			is.NoErr(err)
			u.RawQuery = url.Values{"sslmode": {c.mode}, "sslrootcert": {c.trust}}.Encode()
			db := openSafe(t, u.String(), Config{})
			err = db.Ping()
			is.Equal(err == nil, c.ok)
			is.True(!Unavailable(err))
			if !c.ok {
				return
			}
			// From the pool: the check of idle connections works with TLS.
			is.Equal(one[int](t, db, "select $1::int", 1), 1)
			is.Equal(p.accepted.Load(), int32(1))
			_, err = db.ExecContext(soon(t), "select pg_sleep(1)")
			is.True(errors.Is(err, context.DeadlineExceeded))
		})
	}
}
