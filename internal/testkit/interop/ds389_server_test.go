//go:build interop

package interop

import (
	"crypto/sha1" //nolint:gosec // the server hashes the first password so
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains/ldap"
)

const (
	ds389Base     = "dc=example,dc=org"
	ds389People   = "ou=people," + ds389Base
	ds389Admin    = "cn=Directory Manager"
	ds389Password = "password of nobody"
)

// ds389Templates is the folder in which packages install the configuration of a new server.
var ds389Templates = "/usr/share/dirsrv/data/"

// startDS389 starts a 389 Directory Server with an empty tree, and returns a connection that may
// change everything.
func startDS389(t *testing.T) (d directory, admin *goldap.Conn) {
	t.Helper()
	is := is.New(t)
	dir := t.TempDir()
	sub := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"schema", "lock", "tmp", "ldif", "bak", "run", "inst", "log", "db"} {
		is.NoErr(os.MkdirAll(sub(name), 0o755))
	}
	for _, file := range []string{"config/slapd-collations.conf", "config/certmap.conf", "schema/99user.ldif"} {
		text, err := os.ReadFile("/etc/dirsrv/" + file)
		is.NoErr(err)
		write(t, sub(strings.TrimPrefix(file, "config/")), string(text))
	}
	plain, secure := freePort(t, "127.0.0.1"), freePort(t, "127.0.0.1")
	salted := sha1.Sum([]byte(ds389Password + "salt"))
	fill := func(file string, values map[string]string) string {
		text, err := os.ReadFile(ds389Templates + file)
		is.NoErr(err)
		return regexp.MustCompile(`%[a-z_]+%`).ReplaceAllStringFunc(string(text), func(name string) string {
			return values[name[1:len(name)-1]]
		})
	}
	conf := fill("template-dse.ldif", map[string]string{
		"schema_dir": sub("schema"), "lock_dir": sub("lock"), "tmp_dir": sub("tmp"),
		"cert_dir": dir, "ldif_dir": sub("ldif"), "bak_dir": sub("bak"),
		"run_dir": sub("run"), "inst_dir": sub("inst"), "log_dir": sub("log"),
		"db_dir": sub("db"), "db_home_dir": sub("db"), "config_dir": dir,
		"fqdn": "localhost", "ds_port": fmt.Sprint(plain), "ds_user": "root",
		"rootdn": ds389Admin, "ldapi": sub("run/ldapi"), "ldapi_enabled": "off",
		"ldapi_autobind": "off", "db_lib": "bdb",
		"ds_suffix": ds389Base, "ds_passwd": "{SSHA}" + base64.StdEncoding.EncodeToString(append(salted[:], "salt"...)),
	})
	security := fmt.Sprintf(
		"cn: config\nnsslapd-listenhost: 127.0.0.1\nnsslapd-securelistenhost: 127.0.0.1\nnsslapd-security: "+
			"on\nnsslapd-secureport: %d\n",
		secure,
	)
	conf = strings.Replace(conf, "cn: config\n", security, 1)
	write(t, sub("dse.ldif"), conf)

	// Its keys are in an NSS database, under the name in the template.
	ca := newAuthority(t)
	write(t, sub("ca.pem"), ca.PEM)
	ca.issue(t, sub("cert.pem"), sub("key.pem"), "localhost", "127.0.0.1")
	write(t, sub("pin.txt"), "Internal (Software) Token:\n")
	run(t, dir, "certutil", "-N", "-d", "sql:"+dir, "--empty-password")
	run(t, dir, "certutil", "-A", "-d", "sql:"+dir, "-n", "ca", "-t", "CT,,", "-i", sub("ca.pem"))
	run(
		t, dir, "openssl", "pkcs12", "-export", "-in", sub("cert.pem"), "-inkey", sub("key.pem"), "-name",
		"Server-Cert", "-out", sub("server.p12"), "-passout", "pass:x",
	)
	run(t, dir, "pk12util", "-i", sub("server.p12"), "-d", "sql:"+dir, "-W", "x", "-K", "")

	s := serve(t, dir, nil, "ns-slapd", "-D", dir, "-i", sub("run/pid"), "-d", "16384") // -d: it stays a child process
	url := fmt.Sprintf("ldap://127.0.0.1:%d", plain)
	s.wait(t, func() error {
		c, err := goldap.DialURL(url)
		if err == nil {
			admin, err = c, c.Bind(ds389Admin, ds389Password)
		}
		return err
	})
	t.Cleanup(func() { admin.Close() })
	backend := "cn=userRoot,cn=ldbm database,cn=plugins,cn=config"
	add(t, admin, backend, "objectClass", "top", "objectClass", "extensibleObject", "objectClass",
		"nsBackendInstance", "cn", "userRoot",
		"nsslapd-suffix", ds389Base, "nsslapd-directory", sub("db/userRoot"))
	add(t, admin, `cn="`+ds389Base+
		`",cn=mapping tree,cn=config`, "objectClass", "top",
		"objectClass", "extensibleObject", "objectClass", "nsMappingTree",
		"cn", ds389Base, "nsslapd-state", "backend", "nsslapd-backend", "userRoot")
	add(t, admin, ds389Base, "objectClass", "top", "objectClass", "domain", "dc", "example",
		"aci",
		`(targetattr != "userPassword")(version 3.0; acl "read"; allow (read, search, compare) userdn = `+
			`"ldap:///all";)`)
	for _, unit := range []string{"people", "groups"} {
		add(t, admin, "ou="+unit+","+ds389Base, "objectClass", "organizationalUnit", "ou", unit)
	}
	reader := ds389User(t, admin, "reader")
	return directory{ldap.LDAP{}, map[string]any{
		"url": fmt.Sprintf("ldaps://127.0.0.1:%d", secure), "caCert": ca.PEM,
		"bindDN": reader, "bindPassword": ds389Password, "baseDN": ds389Base,
		"userFilter": "(&(objectClass=person)(!(uid=reader)))", "groupBaseDN": "ou=groups," + ds389Base,
	}}, admin
}

// ds389User adds a user with ds389Password, and returns the DN.
func ds389User(t *testing.T, admin *goldap.Conn, name string, attributes ...string) string {
	t.Helper()
	dn := "uid=" + goldap.EscapeDN(name) + "," + ds389People
	add(t, admin, dn, append([]string{
		"objectClass", "inetOrgPerson", "uid", name, "cn", name, "sn", name, "userPassword", ds389Password,
	}, attributes...)...)
	return dn
}
