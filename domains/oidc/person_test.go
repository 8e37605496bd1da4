package oidc_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// groupsOf are the members of a configuration that asks for groups.
func groupsOf(claim string) object { return object{"claims": object{"groups": claim}} }

// enter is login that returns all that the provider says.
func enter(t *testing.T, realm domains.RedirectLogin) (domains.SignedIn, error) {
	t.Helper()
	location, kept, err := realm.Begin(t.Context(), at, "the state")
	is.New(t).NoErr(err)
	return realm.Finish(t.Context(), at, kept, domains.Answer{Params: visit(t, location), State: "the state"})
}

func TestGroups(t *testing.T) {
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprint("group ", i)
	}
	for name, c := range map[string]struct {
		claim    string
		person   object
		want     []string
		without  bool   // Groups is nil
		noGroups string // part of it
	}{
		"not asked for": {"", object{"groups": []string{"a"}}, nil, true, ""},
		"texts": {
			"groups", object{"groups": []string{"b", "a", "b", "", strings.Repeat("x", 1025), "\x00"}},
			[]string{"a", "b"}, false, "",
		},
		"one text": {"groups", object{"groups": "staff"}, []string{"staff"}, false, ""},
		"objects": {
			"groups", object{"groups": []object{{"name": "b", "id": 7}, {"name": "a"}}}, []string{"a", "b"},
			false, "",
		},
		"a path": {
			"realm_access.roles", object{"realm_access": object{"roles": []string{"editor"}}},
			[]string{"editor"}, false, "",
		},
		"a name with dots": {
			"https://x.io/groups",
			object{"https://x.io/groups": []string{"a"}, "https://x": object{"io/groups": []string{"b"}}},
			[]string{"a"}, false, "",
		},
		"none":                  {"groups", object{"groups": []string{}}, []string{}, false, ""},
		"no claim":              {"groups", object{}, []string{}, false, ""},
		"null":                  {"groups", object{"groups": nil}, []string{}, false, ""},
		"a number":              {"groups", object{"groups": 7}, nil, true, "neither a list nor a text"},
		"numbers":               {"groups", object{"groups": []any{"a", 7}}, nil, true, "something else"},
		"objects without names": {"groups", object{"groups": []object{{"id": "a"}}}, nil, true, "something else"},
		"too many":              {"groups", object{"groups": many}, nil, true, "more than 1000"},
		"too many for Entra": {
			"groups",
			object{"_claim_names": object{"groups": "src1"}, "_claim_sources": object{"src1": object{}}}, nil,
			true, "an overage",
		},
		"too many for a fragment": {"groups", object{"hasgroups": true}, nil, true, "an overage"},
		"roles in place of groups": {
			"roles", object{"roles": []string{"a"}, "hasgroups": true}, []string{"a"}, false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, p := is.New(t), newProvider(t)
			p.Person = object{"sub": "0017", "preferred_username": "jo"}
			for name, value := range c.person {
				p.Person[name] = value
			}
			p.Userinfo = object{"sub": "0017"}
			who, err := enter(t, p.open(t, groupsOf(c.claim)))
			is.NoErr(err)
			is.Equal(who.Groups == nil, c.without)
			is.Equal(len(who.Groups), len(c.want))
			for i := range c.want {
				is.Equal(who.Groups[i], c.want[i])
			}
			is.Equal(who.NoGroups == "", c.noGroups == "")
			is.True(strings.Contains(who.NoGroups, c.noGroups))
		})
	}
}

// TestMalformedOverage checks that the log has the reason why a token with a malformed overage is
// refused.
func TestMalformedOverage(t *testing.T) {
	p := newProvider(t)
	for _, sources := range []any{nil, object{}, object{"src2": object{}}} {
		p.Be(object{
			"sub":                "0017",
			"preferred_username": "jo",
			"_claim_names":       object{"groups": "src1"},
			"_claim_sources":     sources,
		})
		_, err := enter(t, p.open(t, groupsOf("groups")))
		refused(t, err, "leaves the claim groups to another place")
		refused(t, err, "_claim_sources")
	}
}

// TestIDClaim: an id of the configuration's choice replaces sub, and nobody's sub is taken for one.
func TestIDClaim(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	byOID := p.open(t, object{"claims": object{"id": "oid"}})
	p.Be(object{"sub": "0017", "preferred_username": "jo", "oid": "0018"})
	who, err := enter(t, byOID)
	is.NoErr(err)
	is.Equal(who.ID, p.URL+"#oid=0018")
	is.Equal(who.AccountID, "0018")
	who, err = enter(t, p.open(t, nil))
	is.NoErr(err)
	is.Equal(who.ID, p.URL+"#0017")
	is.Equal(who.AccountID, "")
	who, err = enter(t, p.open(t, object{"claims": object{"id": "sub"}}))
	is.NoErr(err)
	is.Equal(who.ID, p.URL+"#0017")
	is.Equal(who.AccountID, "0017")
	for _, bad := range []any{nil, "", 7, strings.Repeat("x", 256), "a\nb"} {
		p.Be(object{"sub": "0017", "preferred_username": "jo", "oid": bad})
		_, err = enter(t, byOID)
		refused(t, err, "claims.id")
	}
}

// TestUsernames: preferred_username comes before sub, wherever it is.
func TestUsernames(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	byUPN := p.open(t, object{"claims": object{"username": "upn"}})
	p.Set(func() {
		p.Person = object{"sub": "0017"}
		p.Userinfo = object{"sub": "0017", "preferred_username": "jo"}
	})
	for _, realm := range []domains.RedirectLogin{p.open(t, nil), byUPN} {
		who, err := enter(t, realm)
		is.NoErr(err)
		is.Equal(who.Username, "jo")
	}
	p.Set(func() { p.Userinfo["upn"] = "jo@corp" })
	who, err := enter(t, byUPN)
	is.NoErr(err)
	is.Equal(who.Username, "jo@corp")
}

// TestUserinfoFails: only what nothing depends on may be missing.
func TestUserinfoFails(t *testing.T) {
	full := object{"sub": "0017", "preferred_username": "jo", "email": "jo@example.com", "email_verified": true}
	without := func(names ...string) object {
		person := object{}
		for name, value := range full {
			person[name] = value
		}
		for _, name := range names {
			delete(person, name)
		}
		return person
	}
	for name, c := range map[string]struct {
		person object
		config object
		code   errs.Code
	}{
		"what is nice to have": {full, nil, ""},
		"an address":           {without("email", "email_verified"), nil, ""},
		"the username":         {without("preferred_username"), nil, errs.Upstream},
		"groups":               {full, groupsOf("groups"), errs.Upstream},
		"the id":               {full, object{"claims": object{"id": "oid"}}, errs.Upstream},
		"the address of an account": {
			without("email"), object{"accounts": "corp", "accountsBy": "email"}, errs.Upstream,
		},
		"the address that is allowed": {
			without("email"), object{"allow": object{"domains": []string{"example.com"}}}, errs.Upstream,
		},
		"a claim that is allowed": {
			full, object{"allow": object{"claims": object{"hd": "example.com"}}}, errs.Upstream,
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, p := is.New(t), newProvider(t)
			p.Person = c.person
			p.Broken["/userinfo"] = http.NotFound
			who, err := enter(t, p.open(t, c.config))
			is.Equal(errs.CodeOf(err), c.code)
			if err == nil {
				is.Equal(who.Username, "jo")
			}
			is.Equal(p.Count("/userinfo"), 1)
		})
	}
}

func TestVerifiedAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		person object
		claim  string
		want   bool
	}{
		"verified":           {object{"email": "j@x.io", "email_verified": true}, "email", true},
		"verified in a text": {object{"email": "j@x.io", "email_verified": "true"}, "email", true},
		"Entra's own":        {object{"email": "j@x.io", "xms_edov": true}, "email", true},
		"both":               {object{"email": "j@x.io", "xms_edov": true, "email_verified": false}, "email", false},
		"not verified":       {object{"email": "j@x.io", "email_verified": false}, "email", false},
		"nothing said":       {object{"email": "j@x.io"}, "email", false},
		"no address":         {object{"email_verified": true}, "email", false},
		"another claim":      {object{"email": "j@x.io", "email_verified": true, "mail": "boss@x.io"}, "mail", false},
	} {
		t.Run(name, func(t *testing.T) {
			is, p := is.New(t), newProvider(t)
			c.person["sub"], c.person["preferred_username"] = "0017", "jo"
			p.Be(c.person)
			who, err := enter(t, p.open(t, object{"claims": object{"email": c.claim}}))
			is.NoErr(err)
			is.Equal(who.EmailVerified, c.want)
		})
	}
	// What userinfo says of its address says nothing of that in the ID token.
	is, p := is.New(t), newProvider(t)
	p.Person = object{"sub": "0017", "preferred_username": "jo", "email": "boss@example.com"}
	p.Userinfo = object{"sub": "0017", "email": "jo@example.com", "email_verified": true, "xms_edov": true}
	who, err := enter(t, p.open(t, nil))
	is.NoErr(err)
	is.Equal(who.Email, "boss@example.com")
	is.True(!who.EmailVerified)
}

func TestClaimsAreBounded(t *testing.T) {
	is, p := is.New(t), newProvider(t)
	person := object{
		"sub": "0017", "preferred_username": "jo", "hd": "example.com",
		"admin": true, "level": 7, "roles": []any{"a", 1, object{"x": "y"}},
		"realm_access": object{"roles": []string{"editor"}, "deep": object{"x": "y"}},
		"long":         strings.Repeat("x", 1025),
		"nul":          "a\x00", "sid": "s-1",
	}
	for i := range 300 {
		person[fmt.Sprintf("z%03d", i)] = strings.Repeat("z", 1000)
	}
	p.Be(person)
	who, err := enter(t, p.open(t, nil))
	is.NoErr(err)
	size := 0
	for name, texts := range who.Claims {
		size += len(name) + len(strings.Join(texts, ""))
	}
	is.True(len(who.Claims) > 20 && len(who.Claims) <= 200 && size <= 64<<10)
	for name, want := range map[string]string{
		"hd": "example.com", "admin": "true", "level": "7", "roles": "a 1", "realm_access.roles": "editor",
		"realm_access.deep.x": "", "long": "", "nul": "", "nonce": "", "sid": "",
	} {
		is.Equal(strings.Join(who.Claims[name], " "), want)
	}
}
