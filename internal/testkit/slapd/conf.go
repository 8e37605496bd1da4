package slapd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// conf is a slapd.conf. refint updates members of groups when an entry is renamed or deleted, as
// Active Directory does.
const conf = `
pidfile %[1]s/pid
TLSCACertificateFile %[1]s/ca.pem
TLSCertificateFile %[1]s/cert.pem
TLSCertificateKeyFile %[1]s/key.pem
database mdb
maxsize 2147483648
envflags nosync
suffix "%[2]s"
rootdn "%[3]s"
rootpw %[4]s
directory %[1]s
index objectClass,uid,mail,member,sAMAccountName eq
limits dn.exact="%[5]s" size=unlimited time=unlimited
overlay refint
refint_attributes member uniqueMember
access to attrs=userPassword by anonymous auth by * none
%[6]saccess to * by * read
`

// configure writes all files that the server reads.
func (s *Server) configure(in installation, tree *Tree) error {
	var b strings.Builder
	for _, name := range []string{"core", "cosine", "inetorgperson", "nis"} {
		fmt.Fprintf(&b, "include %s\n", filepath.Join(in.schema, name+".schema"))
	}
	fmt.Fprintf(&b, "include %s\n", s.file("ad.schema"))
	if in.modules != "" {
		fmt.Fprintf(&b, "modulepath %s\n", in.modules)
		for _, name := range append([]string{"back_mdb", "refint"}, tree.overlays...) {
			if first([]string{in.modules}, name+".*") != "" { // otherwise it is built in
				fmt.Fprintf(&b, "moduleload %s\n", name)
			}
		}
	}
	fmt.Fprintf(&b, conf, s.folder, BaseDN, AdminDN, s.password, ReaderDN, tree.access)
	b.WriteString(tree.conf)
	schema, err := activeDirectory(in.schema)
	if err != nil {
		return err
	}
	return errors.Join(s.write("slapd.conf", b.String()), s.write("ad.schema", schema), s.certify())
}

func (s *Server) write(name, text string) error {
	return os.WriteFile(s.file(name), []byte(text), 0o600)
}

var (
	loginName = regexp.MustCompile(`NAME '(sAMAccountName|userPrincipalName)'\s`)
	memberOf  = regexp.MustCompile(`attributetype \([^()]*NAME 'memberOf'[^()]*\)|\$ memberOf\s`)
)

// activeDirectory returns OpenLDAP's schema of Active Directory with what it lacks for logins:
// names that can be searched, and the class that has them. It leaves out memberOf, which could not
// be searched, because the overlay memberof defines it.
func activeDirectory(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "msuser.schema"))
	schema := loginName.ReplaceAllString(string(text), "$0 EQUALITY caseIgnoreMatch ")
	return memberOf.ReplaceAllString(schema, "") +
		"\nobjectclass ( 1.2.840.113556.1.5.6 NAME 'securityPrincipal' SUP top AUXILIARY MAY sAMAccountName )\n", err
}

// certify creates a certificate authority and the server's certificate.
func (s *Server) certify() error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "throwaway"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	caDER, err1 := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	der, err2 := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, caKey)
	keyDER, err3 := x509.MarshalPKCS8PrivateKey(key)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	s.CACert = text("CERTIFICATE", caDER)
	return errors.Join(err1, err2, err3, s.write("ca.pem", s.CACert),
		s.write("cert.pem", text("CERTIFICATE", der)), s.write("key.pem", text("PRIVATE KEY", keyDER)))
}
