//go:build interop

package interop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/matryer/is"
)

// server is a running program. It is killed when its test ends, or when the process of the test
// ends, even if that is killed. A failed test shows the end of its log.
type server struct {
	log   string
	ended chan struct{}
}

// watch runs a program until standard input ends.
const watch = `exec 3<&0
"$@" </dev/null 3<&- &
server=$!
{ cat <&3 >/dev/null; kill -KILL $server; } 2>/dev/null &
wait $server`

// serve starts a program in a folder, with variables added to the environment.
func serve(t *testing.T, dir string, env []string, program string, args ...string) *server {
	t.Helper()
	is := is.New(t)
	s := &server{log: filepath.Join(dir, filepath.Base(program)+".log"), ended: make(chan struct{})}
	log, err := os.Create(s.log)
	is.NoErr(err)
	in, pipe, err := os.Pipe()
	is.NoErr(err)
	cmd := exec.Command("/bin/sh", append([]string{"-c", watch, "watch", program}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, log, log
	is.NoErr(cmd.Start())
	in.Close()
	log.Close()
	go func() { _ = cmd.Wait(); close(s.ended) }()
	t.Cleanup(func() {
		pipe.Close()
		<-s.ended
		if t.Failed() {
			t.Logf("the log of %s ends with:\n%s", program, s.tail())
		}
	})
	return s
}

func (s *server) tail() string {
	text, _ := os.ReadFile(s.log)
	return string(text[max(0, len(text)-4000):])
}

// wait waits until the server is ready.
func (s *server) wait(t *testing.T, ready func() error) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		err := ready()
		if err == nil {
			return
		}
		select {
		case <-s.ended:
			t.Fatalf("the server has ended, not ready: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server is not ready: %v", err)
		}
	}
}

// run runs a program until it ends.
func run(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// freePort returns a port of an address below those that operating systems assign to clients.
func freePort(t *testing.T, ip string) int {
	t.Helper()
	for range 100 {
		port := 15000 + mathrand.IntN(17000)
		if l, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// authority signs certificates.
type authority struct {
	PEM  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	is := is.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "interop CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	is.NoErr(err)
	cert, err := x509.ParseCertificate(der)
	is.NoErr(err)
	return &authority{PEM: pemOf("CERTIFICATE", der), cert: cert, key: key}
}

// issue writes a certificate for names and addresses, and its key, to two PEM files.
func (a *authority) issue(t *testing.T, certFile, keyFile string, names ...string) {
	t.Helper()
	is := is.New(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	is.NoErr(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: names[0]},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	is.NoErr(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	is.NoErr(err)
	write(t, certFile, pemOf("CERTIFICATE", der))
	write(t, keyFile, pemOf("PRIVATE KEY", keyDER))
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// write writes a file that only its owner can read.
func write(t *testing.T, file, text string) {
	t.Helper()
	is := is.New(t)
	is.NoErr(os.MkdirAll(filepath.Dir(file), 0o755))
	is.NoErr(os.WriteFile(file, []byte(text), 0o600))
}
