package ldap_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// try returns what a test of a configuration finds: the name and result of each step, and the
// message of the last one.
func try(t *testing.T, d domains.Driver, config json.RawMessage, username string) (steps []domains.Step, last string) {
	t.Helper()
	steps = mustOpen(t, d, config).(domains.Tester).Test(t.Context(), domains.Endpoints{}, username)
	is.New(t).True(len(steps) > 0)
	return steps, steps[len(steps)-1].Message
}

// TestTryNSPerson: people of 389 Directory Server whom the default userFilter does not find are
// hinted at.
func TestTryNSPerson(t *testing.T) {
	f := newFake(t, func(r asked) {
		if r.nth == 1 {
			r.person(1)
		} else if r.nth == 2 {
			r.person(2)
			r.person(3)
		}
		r.end("")
	})
	is := is.New(t)
	steps, _ := try(t, ldap.LDAP{}, f.config(), "")
	is.Equal(steps[3].Name, "search")
	is.True(steps[3].OK)
	is.True(strings.HasSuffix(steps[3].Message,
		" userFilter leaves out 2 entries of the class nsPerson, which 389 Directory Server gives to people: "+
			"set it to (|(objectClass=person)(objectClass=nsPerson)) if they should log in."))
	is.True(strings.Contains(f.log(), "search (&(objectClass=nsPerson)(!(objectClass=person)))"))
}

// TestTry: every step with what it has found, and what to do about one that fails.
func TestTry(t *testing.T) {
	is := is.New(t)
	s := slapd.Test(t, company(slapd.LDAP()))
	steps, _ := try(t, ldap.LDAP{}, s.Config(s.TLSURL, map[string]any{
		"hosts": []string{s.TLSURL, strings.Replace(s.TLSURL, "127.0.0.1", "localhost", 1)},
	}), "JO")
	var names []string
	for _, step := range steps {
		names = append(names, step.Name)
		is.True(step.OK)
		t.Log(step.Name, step.Message)
	}
	is.Equal(strings.Join(names, " "), "connect tls connect tls bind search person groups")
	is.Equal(steps[6].Person.Username, "jo")
	is.Equal(len(steps[7].Groups), 2)
	is.Equal(steps[7].Groups[0].Members, nil)
	is.True(strings.Contains(steps[5].Message, "5 people match userFilter (objectClass=person) below "+slapd.BaseDN))

	for _, c := range []struct {
		changed map[string]any
		step    string
		says    string
	}{
		{map[string]any{"url": "ldap://127.0.0.1:1", "timeoutMs": 500}, "connect", "No directory answers"},
		{map[string]any{"url": "ldap://nowhere.invalid"}, "connect", "nowhere.invalid"},
		{map[string]any{"url": s.TLSURL, "caCert": ""}, "tls", "set caCert to this certificate"},
		{map[string]any{"bindPassword": "wrong"}, "bind", "Invalid Credentials"},
		{
			map[string]any{"baseDN": "dc=nowhere"}, "search",
			"There is no such entry, or " + slapd.ReaderDN + " may not see it",
		},
		{map[string]any{"userFilter": "(uid=x)"}, "search", "userFilter leaves them out"},
		{
			map[string]any{"userBaseDN": "uid=jo,ou=people," + slapd.BaseDN, "userFilter": "(uid=x)"}, "search",
			"sees no entry below it at all",
		},
		{
			map[string]any{"attributes": map[string]any{"username": "employeeNumber"}}, "search",
			"sees no employeeNumber of them",
		},
		{map[string]any{"idAttribute": "employeeNumber"}, "person", "no usable employeeNumber"},
		{map[string]any{"groupBaseDN": "ou=nowhere," + slapd.BaseDN}, "groups", "ou=nowhere"},
	} {
		steps, last := try(t, ldap.LDAP{}, s.Config(s.URL, c.changed), "")
		got := steps[len(steps)-1]
		if got.Name != c.step || got.OK || !strings.Contains(last, c.says) {
			t.Errorf("%v: %+v, want %q", c.changed, got, c.says)
		}
		for _, step := range steps[:len(steps)-1] {
			is.True(step.OK)
		}
	}

	steps, last := try(t, ldap.LDAP{}, s.Config(s.URL, nil), "nobody")
	is.True(!steps[len(steps)-1].OK)
	is.True(strings.Contains(last, `"nobody" cannot log in: no entry has this name`))
	_, last = try(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{"groupFilter": "(cn=x)"}), "")
	is.True(strings.Contains(last, "there will be no teams"))

	// One host of two is enough, and both are shown.
	steps, _ = try(t, ldap.LDAP{}, s.Config(
		"ldap://127.0.0.1:1", map[string]any{"hosts": []string{s.URL}, "timeoutMs": 3000},
	), "jo")
	is.True(!steps[0].OK && steps[1].OK && steps[len(steps)-1].OK)
}

// TestTryWritesNothing: what a test asks for are binds and searches.
func TestTryWritesNothing(t *testing.T) {
	is := is.New(t)
	f := newFake(t, func(r asked) { r.person(1); r.end("") })
	_, _ = try(t, ldap.LDAP{}, f.config(), "p1")
	is.Equal(
		f.log(),
		"bind cn=reader; search (objectClass=person); search (&(objectClass=nsPerson)(!(objectClass=person))); "+
			"search (&(objectClass=person)(uid=p1)); search (objectClass=groupOfNames)",
	)
}

// TestADNames: one account under all forms of its name, with the requests of one.
func TestADNames(t *testing.T) {
	is := is.New(t)
	tree := slapd.AD()
	for _, name := range []string{"anna", "o'brien", "anna lee", "a&b", "guest#EXT#"} {
		tree.Person(slapd.Person{Name: name})
	}
	s := slapd.Test(t, tree)
	is.NoErr(s.Set(tree.PersonDN("anna"), "userPrincipalName", "anna.smith@corp.example.org"))
	is.NoErr(s.Set(tree.PersonDN("a&b"), "userPrincipalName", "anna@example.org")) // which is anna's by itself
	is.NoErr(s.Set(tree.PersonDN("o'brien"), "userPrincipalName", "anna lee@corp.example.org"))
	realm := mustOpen(t, ldap.AD{}, s.Config(s.URL, nil))
	for name, want := range map[string]string{
		"anna": "anna", `EXAMPLE\anna`: "anna", `example.org\ANNA`: "anna", "anna.smith@corp.example.org": "anna",
		`OTHER\anna`: "", "anna@example.org": "", "anna@corp.example.org": "", "anna.smith": "",
		"o'brien": "o'brien", "o'brien@example.org": "o'brien", `EXAMPLE\o'brien`: "o'brien",
		"anna lee": "anna lee", "anna lee@example.org": "anna lee", "anna lee@corp.example.org": "o'brien",
		"a&b": "a&b", "guest#EXT#": "guest#EXT#", `EXAMPLE\guest#EXT#`: "guest#EXT#",
	} {
		who, err := realm.Login(t.Context(), name, slapd.PasswordOf(want))
		if who.Username != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", name, who.Username, err)
		}
		if want != "" { // nor with anybody else's password
			who, err = realm.Login(t.Context(), name, "wrong")
			is.True(err != nil)
			is.Equal(who.Username, want) // against whom it counts
		}
	}

	f := newFake(t, func(r asked) { r.result(goldap.ApplicationSearchResultDone, 0) })
	for _, name := range []string{"anna", `X\anna`, "anna@x", `Y\anna`, "anna@y"} {
		_, _ = mustOpen(t, ldap.AD{}, f.config()).Login(t.Context(), name, "pw")
		is.Equal(strings.Count(f.log(), ";"), 2) // a bind, a search, a bind
	}
}

// TestPrimaryGroups: a primary group has those as members who do not name it, and only a group that
// is asked for becomes a team.
func TestPrimaryGroups(t *testing.T) {
	is := is.New(t)
	tree := slapd.LDAP()
	posix := func(name, gid string) string {
		dn := "uid=" + name + ",ou=people," + slapd.BaseDN
		tree.Add(dn, "objectClass", "inetOrgPerson", "objectClass", "posixAccount", "uid", name, "cn", name,
			"sn", name, "uidNumber", "1"+gid, "gidNumber", gid,
			"homeDirectory", "/")
		return dn
	}
	posix("anna", "100")
	posix("ben", "200")
	for gid, name := range map[string]string{"100": "staff", "200": "guests", "300": "nobody"} {
		has := []string{"objectClass", "posixGroup", "cn", name, "gidNumber", gid}
		if name == "guests" {
			has = append(has, "memberUid", "anna", "memberUid", "ben", "memberUid", "stranger")
		}
		tree.Add("cn="+name+",ou=groups,"+slapd.BaseDN, has...)
	}
	s := slapd.Test(t, tree)
	_, groups, err := everything(
		t.Context(), mustOpen(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{"groupMember": "memberUid"})),
	)
	is.NoErr(err)
	is.Equal(groups, map[string][]string{"staff": {"anna"}, "guests": {"anna", "ben"}, "nobody": {}})
}

// TestTryOfAnotherServer: what is at an address that is not that of a directory is not told, nor
// whether anything is, and all take the same time.
func TestTryOfAnotherServer(t *testing.T) {
	for _, c := range []struct{ scheme, bindDN string }{{"ldap", "cn=reader"}, {"ldap", ""}, {"ldaps", "cn=reader"}} {
		told := map[string]string{}
		for name, answer := range map[string]func(net.Conn){
			"HTTP":      func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\nintranet")) },
			"a banner":  func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-intranet\r\n")) },
			"the end":   func(c net.Conn) { _ = c.Close() },
			"silence":   func(net.Conn) {},
			"many zero": func(c net.Conn) { _, _ = c.Write(make([]byte, 1<<16)) },
			"nothing":   nil,
		} {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			is.New(t).NoErr(err)
			t.Cleanup(func() { _ = l.Close() })
			if answer == nil {
				is.New(t).NoErr(l.Close())
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					t.Cleanup(func() { _ = c.Close() })
					go answer(c)
				}
			}()
			config := map[string]any{"url": c.scheme + "://" + l.Addr().String(), "baseDN": "dc=x", "timeoutMs": 300}
			if c.bindDN != "" {
				config["bindDN"], config["bindPassword"] = c.bindDN, "secret"
			}
			raw, err := json.Marshal(config)
			is.New(t).NoErr(err)
			began := time.Now()
			steps, last := try(t, ldap.LDAP{}, raw, "")
			is.New(t).True(time.Since(began) >= 300*time.Millisecond)
			all := ""
			for _, step := range steps {
				all += fmt.Sprintln(step.Name, step.OK, strings.ReplaceAll(step.Message, l.Addr().String(), ""))
			}
			if strings.Contains(all, "intranet") || strings.Contains(all, " ms") ||
				!strings.HasPrefix(last, "No directory answers at ") {
				t.Errorf("%s: %s", name, all)
			}
			told[all] = name
		}
		if len(told) != 1 {
			t.Errorf("they are told apart: %v", told)
		}
	}
}
