//go:build interop

package interop

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
)

const (
	sambaBase     = "DC=corp,DC=example,DC=com"
	sambaPeople   = "OU=staff," + sambaBase
	sambaAdmin    = "Administrator@corp.example.com"
	sambaPassword = "Passw0rd of nobody"
)

// sambaConf runs only the directory, without file sharing, Kerberos and DNS, in a folder and on a
// loopback address. Its ports are those of LDAP and cannot be changed, so root has to start it.
const sambaConf = `[global]
netbios name = DC1
realm = CORP.EXAMPLE.COM
workgroup = CORP
server role = active directory domain controller
server services = ldap
dcerpc endpoint servers = none
interfaces = %[2]s/8
bind interfaces only = yes
private dir = %[1]s/private
lock directory = %[1]s
state directory = %[1]s/state
cache directory = %[1]s/cache
binddns dir = %[1]s/bind-dns
pid directory = %[1]s/run
ncalrpc dir = %[1]s/ncalrpc
tls keyfile = %[1]s/key.pem
tls certfile = %[1]s/cert.pem
tls cafile = %[1]s/ca.pem
`

// startSamba starts a domain controller of a new domain, and returns a connection that may change
// everything.
func startSamba(t *testing.T) (d directory, admin *goldap.Conn, ip string) {
	t.Helper()
	is := is.New(t)
	if os.Getuid() != 0 {
		t.Fatal("Samba's directory has the ports 389 and 636: run this test as root")
	}
	ip = fmt.Sprintf("127.%d.%d.%d", 2+mathrand.IntN(200), mathrand.IntN(256), 1+mathrand.IntN(250))
	dir := t.TempDir()
	run(t, dir, "samba-tool", "domain", "provision", "--targetdir="+
		dir, "--realm=CORP.EXAMPLE.COM", "--domain=CORP", "--server-role=dc", "--dns-backend=NONE",
		"--adminpass="+sambaPassword, "--host-name=dc1",
		"--host-ip="+ip, "--option=interfaces="+ip+"/8", "--option=bind interfaces only=yes")
	for _, folder := range []string{"cache", "run", "ncalrpc"} {
		is.NoErr(os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	ca := newAuthority(t)
	write(t, filepath.Join(dir, "ca.pem"), ca.PEM)
	ca.issue(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), "dc1.corp.example.com", ip)
	write(t, filepath.Join(dir, "smb.conf"), fmt.Sprintf(sambaConf, dir, ip))
	s := serve(t, dir, nil, "samba", "-i", "-M", "single", "-s", filepath.Join(dir, "smb.conf"), "--debug-stdout")
	s.wait(t, func() error {
		c, err := goldap.DialURL("ldaps://"+ip, goldap.DialWithTLSConfig(&tls.Config{InsecureSkipVerify: true}))
		if err == nil {
			admin, err = c, c.Bind(sambaAdmin, sambaPassword)
		}
		return err
	})
	t.Cleanup(func() { admin.Close() })
	add(t, admin, sambaPeople, "objectClass", "organizationalUnit")
	reader := sambaUser(t, admin, "reader")
	return directory{ldap.AD{}, map[string]any{
		"url": "ldaps://" + net.JoinHostPort(ip, "636"), "caCert": ca.PEM,
		"bindDN": reader, "bindPassword": sambaPassword, "baseDN": sambaBase,
		"userBaseDN": sambaPeople,
	}}, admin, ip
}

// sambaUser adds an enabled user with sambaPassword, and returns the DN.
func sambaUser(t *testing.T, admin *goldap.Conn, name string, attributes ...string) string {
	t.Helper()
	dn := "CN=" + goldap.EscapeDN(name) + "," + sambaPeople
	add(t, admin, dn, append([]string{
		"objectClass", "user", "sAMAccountName", name,
		"unicodePwd", quotedUTF16(sambaPassword), "userAccountControl", "512",
	}, attributes...)...)
	return dn
}

// quotedUTF16 returns a password in the form for Active Directory.
func quotedUTF16(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(`"` + s + `"`)) {
		_ = binary.Write(&b, binary.LittleEndian, unit)
	}
	return b.String()
}
