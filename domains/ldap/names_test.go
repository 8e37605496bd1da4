package ldap

import (
	"strings"
	"testing"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
)

func namesOf(t *testing.T, config string, f flavor) *realm {
	t.Helper()
	r, err := open(
		f, []byte(`{"url": "ldap://a", "baseDN": "ou=all,dc=corp,dc=example,dc=com"`+config+`}`),
		domains.IDAttributes{}, nil, nil, nil,
	)
	is.New(t).NoErr(err)
	return r.(*realm)
}

// TestAccount: which names are one of this domain, and whose.
func TestAccount(t *testing.T) {
	for _, c := range []struct{ config, name, want string }{
		{``, "anna", "anna"},
		{``, "anna@corp.example.com", "anna"},
		{``, "Anna@CORP.example.com", "Anna"},
		{``, `CORP\anna`, "anna"},
		{``, `corp.example.com\anna`, "anna"},
		{``, `OTHER\anna`, ""},
		{``, `\anna`, ""},
		{``, `CORP\`, ""},
		{``, `CORP\OTHER\anna`, `OTHER\anna`}, // nobody's name
		{``, "anna@other.example.com", ""},
		{``, "anna@example.com", ""},
		{``, "@corp.example.com", ""},
		{``, "anna@", ""},
		{``, "a@b@corp.example.com", "a@b"},
		{`, "netbiosName": "OLD"`, `OLD\anna`, "anna"},
		{`, "netbiosName": "OLD"`, `CORP\anna`, ""},
		{`, "upnSuffixes": ["example.com", "@x.org"]`, "anna@x.org", "anna"},
		{`, "upnSuffixes": ["example.com"]`, "anna@corp.example.com", ""},
		{`, "upnSuffixes": []`, "anna@corp.example.com", ""},
		{`, "attributes": {"username": "userPrincipalName"}`, "anna@x.org", "anna@x.org"},
		{`, "attributes": {"username": "userPrincipalName"}`, `CORP\anna`, ""},
		{`, "attributes": {"username": "mail"}`, `CORP\anna`, `CORP\anna`},
	} {
		if got := namesOf(t, c.config, activeDirectory).Account(c.name); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.config, c.name, got, c.want)
		}
	}
	is.New(t).Equal(namesOf(t, ``, standard).Account(`CORP\anna`), `CORP\anna`)
}

// TestChoose: nobody is taken for somebody else, whatever their userPrincipalName is.
func TestChoose(t *testing.T) {
	const base = ",ou=all,dc=corp,dc=example,dc=com"
	entry := func(dn, account, principal string) located {
		e := goldap.NewEntry(dn, map[string][]string{accountName: {account}, principalName: {principal}})
		return located{Entry: e}
	}
	anna := entry("cn=a"+base, "anna", "anna.smith@example.com")
	mallory := entry("cn=m"+base, "mallory", "anna@corp.example.com")
	maxi := entry("cn=x"+base, "anna.smith", "x@example.com")
	odd := entry("cn=o"+base, "anna@corp.example.com", "")
	other := entry("cn=a,dc=sub,dc=corp,dc=example,dc=com", "anna", "")
	for _, c := range []struct {
		name  string
		found []located
		want  string // DN; "" for a refusal
	}{
		{"anna", []located{anna}, anna.DN},
		{"ANNA", []located{anna}, anna.DN},
		{"anna", []located{anna, other}, ""},
		{`CORP\anna`, []located{anna}, anna.DN},
		{`CORP\anna`, []located{anna, other}, anna.DN}, // the other one is of the domain SUB
		{`CORP\anna`, []located{other}, ""},
		{`OTHER\anna`, []located{anna}, ""},
		{"anna@corp.example.com", []located{anna}, anna.DN},
		{"anna@corp.example.com", []located{mallory}, mallory.DN},
		{"anna@corp.example.com", []located{anna, mallory}, ""},
		{"anna@corp.example.com", []located{anna, mallory, odd}, odd.DN}, // the username is the name itself
		{"anna.smith@example.com", []located{anna}, anna.DN},
		// the suffix is not that of the domain, so maxi is not meant
		{"anna.smith@example.com", []located{anna, maxi}, anna.DN},
		{"anna.smith", []located{maxi}, maxi.DN},
		{"anna.smith", []located{anna}, ""},
		{"mallory@corp.example.com", []located{mallory}, mallory.DN},
		{"nobody", nil, ""},
	} {
		one, why := namesOf(t, ``, activeDirectory).names.choose(c.name, c.found)
		got := ""
		if one != nil {
			got = one.DN
		}
		if got != c.want || (why == "") != (c.want != "") {
			t.Errorf("%s: %q (%s), want %q", c.name, got, why, c.want)
		}
	}
	one, _ := namesOf(
		t, `, "upnSuffixes": ["example.com"]`, activeDirectory,
	).names.choose("anna.smith@example.com", []located{anna, maxi})
	is.New(t).True(one == nil) // either may be meant
}

// TestConditions: what is searched for. Every form is one request.
func TestConditions(t *testing.T) {
	for _, c := range []struct{ config, name, want string }{
		{``, "anna", "(sAMAccountName=anna)"},
		{``, "o'brien & #1", "(sAMAccountName=o'brien & #1)"},
		{``, `CORP\anna`, `(|(sAMAccountName=CORP\5canna)(sAMAccountName=anna))`},
		{``, `OTHER\anna`, `(sAMAccountName=OTHER\5canna)`},
		{
			``, "anna@corp.example.com",
			"(|(sAMAccountName=anna@corp.example.com)(sAMAccountName=anna)(userPrincipalName=anna@corp.example.com))",
		},
		{``, "anna@x.org", "(|(sAMAccountName=anna@x.org)(userPrincipalName=anna@x.org))"},
		{
			`, "attributes": {"username": "userPrincipalName"}`, "anna",
			"(|(userPrincipalName=anna)(sAMAccountName=anna))",
		},
		{`, "attributes": {"username": "userPrincipalName"}`, "anna@x.org", "(userPrincipalName=anna@x.org)"},
		{`, "attributes": {"username": "mail"}`, "anna@x.org", "(mail=anna@x.org)"},
	} {
		got := filterOf(namesOf(t, c.config, activeDirectory).names.conditions(c.name))
		if _, err := goldap.CompileFilter(got); got != c.want || err != nil {
			t.Errorf("%s %s: %s, want %s", c.config, c.name, got, c.want)
		}
	}
	for _, name := range []string{`anna@corp.example.com`, `CORP\anna`} {
		is.New(t).True(!strings.Contains(filterOf(namesOf(t, ``, standard).names.conditions(name)), "|"))
	}
}
