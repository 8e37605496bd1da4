package pgsafe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// tlsConfig returns the configuration for the sslmode, or nil for no TLS. NewConnector documents
// the modes.
func tlsConfig(network, host string, p params) (*tls.Config, error) {
	mode, rootFile := p.take("sslmode"), p.take("sslrootcert")
	certFile, keyFile := p.take("sslcert"), p.take("sslkey")
	switch {
	case network == "unix":
		return nil, nil
	case mode == "" && loopback(host):
		mode = "disable"
	case mode == "":
		mode = "verify-full"
	}
	c := &tls.Config{ServerName: host}
	switch mode {
	case "disable":
		return nil, nil
	case "allow", "prefer", "require":
		c.InsecureSkipVerify = true
		if rootFile != "" { // as libpq does
			c.VerifyConnection = verifyChain(c)
		}
	case "verify-ca":
		c.InsecureSkipVerify = true
		c.VerifyConnection = verifyChain(c)
	case "verify-full":
	default:
		return nil, errors.New("pgsafe: sslmode in the database URL must be disable, require, verify-ca or verify-full")
	}
	return c, loadCertificates(c, rootFile, certFile, keyFile)
}

// verifyChain checks the chain of the certificate but not its name.
func verifyChain(c *tls.Config) func(tls.ConnectionState) error {
	return func(cs tls.ConnectionState) error {
		if len(cs.PeerCertificates) == 0 {
			return errors.New("pgsafe: the server shows no certificate")
		}
		opts := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
		for _, cert := range cs.PeerCertificates[1:] {
			opts.Intermediates.AddCert(cert)
		}
		_, err := cs.PeerCertificates[0].Verify(opts)
		return err
	}
}

func loadCertificates(c *tls.Config, rootFile, certFile, keyFile string) error {
	if rootFile != "" && rootFile != "system" {
		pem, err := os.ReadFile(rootFile)
		if err != nil {
			return fmt.Errorf("pgsafe: sslrootcert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("pgsafe: sslrootcert: no certificate in %s", rootFile)
		}
	}
	if certFile == "" && keyFile == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("pgsafe: sslcert and sslkey: %w", err)
	}
	c.Certificates = []tls.Certificate{cert}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
