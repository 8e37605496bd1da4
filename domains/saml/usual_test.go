package saml_test

import (
	"testing"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
)

// sent is one attribute as a provider sends it.
type sent struct {
	name, friendly string
	values         []string
}

// withSubject returns a function that replaces the NameID and the attributes of an assertion.
func withSubject(format, nameID string, all ...sent) func(*crewjam.Assertion) {
	return func(a *crewjam.Assertion) {
		a.Subject.NameID = &crewjam.NameID{Format: format, Value: nameID}
		a.AttributeStatements = nil
		for _, s := range all {
			attribute(a, s.name, s.friendly, s.values...)
		}
	}
}

const (
	soap        = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
	microsoft   = "http://schemas.microsoft.com/ws/2008/06/identity/claims/"
	entra       = "http://schemas.microsoft.com/identity/claims/"
	unspecified = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
	email       = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	transient   = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient"
	persistent  = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
)

// What providers send by default, or as their guides say, makes a person without a line of
// configuration.
func TestUsualNames(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	us := p.URL + "/metadata!"
	for name, c := range map[string]struct {
		says      func(*crewjam.Assertion)
		want      domains.Identity
		accountID string
	}{
		"Entra ID": {
			withSubject(email, "anna@corp.example.com",
				sent{soap + "givenname", "", []string{"Anna"}}, sent{soap + "surname", "", []string{"Berg"}},
				sent{soap + "emailaddress", "", []string{"anna.berg@example.com"}},
				sent{soap + "name", "", []string{"anna@corp.example.com"}},
				sent{entra + "displayname", "", []string{"Anna Berg"}},
				sent{entra + "objectidentifier", "", []string{"b5b0..."}},
				sent{entra + "tenantid", "", []string{"t"}}),
			domains.Identity{ID: us + "emailAddress!anna@corp.example.com",
				Username: "anna@corp.example.com", DisplayName: "Anna Berg",
				GivenName: "Anna", FamilyName: "Berg", Email: "anna.berg@example.com"},
			"b5b0...",
		},
		"AD FS": {
			withSubject(unspecified, "",
				sent{soap + "upn", "", []string{"anna@corp.example.com"}},
				sent{soap + "emailaddress", "", []string{"anna@example.com"}},
				sent{soap + "name", "", []string{"Anna Berg"}}, sent{soap + "givenname", "", []string{"Anna"}}),
			domains.Identity{ID: us + "upn!anna@corp.example.com", Username: "anna@corp.example.com",
				DisplayName: "Anna Berg", GivenName: "Anna",
				Email: "anna@example.com"},
			"",
		},
		"AD FS with Windows names": {
			withSubject("", "", sent{microsoft + "windowsaccountname", "", []string{`CORP\anna`}}),
			domains.Identity{ID: us + `windowsaccountname!CORP\anna`, Username: `CORP\anna`}, "",
		},
		"Okta": {
			withSubject(unspecified, "anna.berg@example.com", sent{"firstName", "", []string{"Anna"}},
				sent{"lastName", "", []string{"Berg"}},
				sent{"email", "", []string{"anna@example.com"}}),
			domains.Identity{ID: us + "unspecified!anna.berg@example.com", Username: "anna.berg@example.com",
				GivenName: "Anna", FamilyName: "Berg",
				Email: "anna@example.com"}, "",
		},
		"Google, without attributes": {
			withSubject(email, "anna@example.com"),
			domains.Identity{
				ID:       us + "emailAddress!anna@example.com",
				Username: "anna@example.com",
				Email:    "anna@example.com",
			},
			"",
		},
		"SimpleSAMLphp": {
			withSubject(
				transient, "_7f", sent{"uid", "", []string{"anna"}},
				sent{"mail", "", []string{"anna@example.com"}}, sent{"cn", "", []string{"Anna Berg"}},
			),
			domains.Identity{
				ID:          us + "username!anna",
				Username:    "anna",
				DisplayName: "Anna Berg",
				Email:       "anna@example.com",
			},
			"",
		},
		"OIDs with friendly names": {
			withSubject(transient, "_7f", sent{"urn:oid:0.9.2342.19200300.100.1.1", "uid", []string{"anna"}},
				sent{"urn:oid:0.9.2342.19200300.100.1.3", "mail", []string{"anna@example.com"}}),
			domains.Identity{ID: us + "username!anna", Username: "anna", Email: "anna@example.com"}, "",
		},
		"OIDs": {
			withSubject(transient, "_7f", sent{"urn:oid:0.9.2342.19200300.100.1.1", "", []string{"anna"}},
				sent{"urn:oid:2.5.4.42", "", []string{"Anna"}},
				sent{"urn:oid:2.5.4.4", "", []string{"Berg"}},
				sent{"urn:oid:2.16.840.1.113730.3.1.241", "", []string{"Anna Berg"}}),
			domains.Identity{
				ID:          us + "username!anna",
				Username:    "anna",
				GivenName:   "Anna",
				FamilyName:  "Berg",
				DisplayName: "Anna Berg",
			},
			"",
		},
		"LemonLDAP::NG": {
			withSubject(
				email, "anna@example.com", sent{"uid", "", []string{"anna"}},
				sent{"mail", "", []string{"anna@example.com"}},
			),
			domains.Identity{ID: us + "username!anna", Username: "anna", Email: "anna@example.com"}, "",
		},
		"Keycloak": {
			withSubject(unspecified, "anna", sent{
				"urn:oid:1.2.840.113549.1.9.1", "email", []string{"anna@example.com"},
			},
				sent{"urn:oid:2.5.4.42", "givenName", []string{"Anna"}},
				sent{"urn:oid:2.5.4.4", "surname", []string{"Berg"}},
				sent{"Role", "", []string{"offline_access", "uma_authorization"}}),
			domains.Identity{
				ID:         us + "unspecified!anna",
				Username:   "anna",
				GivenName:  "Anna",
				FamilyName: "Berg",
				Email:      "anna@example.com",
			},
			"",
		},
		"Shibboleth": {
			withSubject(persistent, "x7", sent{
				"urn:oid:1.3.6.1.4.1.5923.1.1.1.6", "eduPersonPrincipalName", []string{"anna@uni.example"},
			}),
			domains.Identity{ID: us + "persistent!x7", Username: "anna@uni.example"}, "x7",
		},
		"Kerberos": {
			withSubject("urn:oasis:names:tc:SAML:2.0:nameid-format:kerberos", "anna@CORP.EXAMPLE.COM"),
			domains.Identity{ID: us + "kerberos!anna@CORP.EXAMPLE.COM", Username: "anna@CORP.EXAMPLE.COM"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			v := p.begin(t, r)
			who, err := v.sign(t, text(t, v.signedResponse(t, c.says)))
			is.NoErr(err)
			is.Equal(who.Identity, c.want)
			is.Equal(who.AccountID, c.accountID)
			is.Equal(who.EmailVerified, false) // nobody has said so
			is.True(who.Groups == nil)         // nobody has asked
		})
	}
	for name, c := range map[string]struct {
		says func(*crewjam.Assertion)
		why  string
	}{
		"transient":  {withSubject(transient, "_7f"), "is no name"},
		"persistent": {withSubject(persistent, "x7"), "is no name"},
		"X.509": {
			withSubject("urn:oasis:names:tc:SAML:1.1:nameid-format:X509SubjectName", "CN=Anna"), "is no name",
		},
		"a name that anybody sets": {
			withSubject(
				transient, "_7f", sent{soap + "name", "", []string{"Anna"}},
				sent{"displayName", "", []string{"admin"}},
			),
			soap + "name, displayName",
		},
		"two": {withSubject(email, "a@b", sent{"uid", "", []string{"anna", "admin"}}), "2 values"},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			who, err := v.finish(t, v.signedResponse(t, c.says))
			refused(t, who, err, c.why)
		})
	}
}

// A name of one kind is not the person with the same name of another kind, and a configured name is
// that alone.
func TestKindsOfNames(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	ids := map[string]bool{}
	usual := p.realm(t, nil)
	all := []func(*crewjam.Assertion){
		withSubject(transient, "x", sent{"uid", "", []string{"anna"}}),
		withSubject(transient, "x", sent{"username", "", []string{"anna"}}),
		withSubject(transient, "x", sent{"sAMAccountName", "", []string{"anna"}}),
		withSubject(transient, "x", sent{soap + "upn", "", []string{"anna"}}),
		withSubject(transient, "x", sent{"eduPersonPrincipalName", "", []string{"anna"}}),
		withSubject("", "anna"), withSubject(email, "anna"),
		withSubject(persistent, "anna", sent{"uid", "", []string{"eve"}}),
		withSubject("urn:oasis:names:tc:SAML:1.1:nameid-format:WindowsDomainQualifiedName", "anna"),
	}
	for _, says := range all {
		v := p.begin(t, usual)
		who, err := v.finish(t, v.signedResponse(t, says))
		is.NoErr(err)
		ids[who.ID] = true
	}
	is.Equal(len(ids), len(all))

	named := p.realm(t, map[string]any{"attributes": map[string]any{"username": "login", "email": ""}})
	v := p.begin(t, named)
	who, err := v.finish(
		t,
		v.signedResponse(
			t,
			withSubject(
				email, "anna@example.com", sent{"login", "", []string{"anna"}},
				sent{"mail", "", []string{"anna@example.com"}},
			),
		),
	)
	is.NoErr(err)
	is.Equal(who, domains.Identity{ID: p.URL + "/metadata!username!anna", Username: "anna"})
	v = p.begin(t, named)
	who, err = v.finish(
		t, v.signedResponse(t, withSubject(email, "anna@example.com", sent{"uid", "", []string{"anna"}})),
	)
	refused(t, who, err, `"login"`)
}

// An attribute that the configuration calls the id is who a person is.
func TestImmutableID(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	r := p.realm(t, map[string]any{"attributes": map[string]any{"id": "oid"}})
	enter := func(says func(*crewjam.Assertion)) (domains.SignedIn, error) {
		v := p.begin(t, r)
		return v.sign(t, text(t, v.signedResponse(t, says)))
	}
	for _, name := range []string{"anna", "anna.berg"} {
		who, err := enter(withSubject(persistent, "x", sent{"uid", "", []string{name}}, sent{"oid", "", []string{"7"}}))
		is.NoErr(err)
		is.Equal([]string{who.ID, who.AccountID, who.Username}, []string{p.URL + "/metadata!id!7", "7", name})
	}
	who, err := enter(withSubject(persistent, "x", sent{"uid", "", []string{"anna"}}))
	refused(t, who.Identity, err, "for the id instead of one")
	who, err = enter(withSubject(
		persistent, "x", sent{"uid", "", []string{"anna"}}, sent{"oid", "", []string{"7", "8"}},
	))
	refused(t, who.Identity, err, "2 values")
}

// Groups are told where somebody asks for them, and an address is verified if the provider says so,
// or the configuration of it.
func TestGroupsAndClaims(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	with := func(config map[string]any, more ...sent) domains.SignedIn {
		t.Helper()
		v := p.begin(t, p.realm(t, config))
		who, err := v.sign(
			t,
			text(
				t,
				v.signedResponse(
					t,
					withSubject(transient, "x", append(
						more, sent{"uid", "", []string{"anna"}}, sent{"mail", "", []string{"a@b.c"}},
					)...),
				),
			),
		)
		is.NoErr(err)
		return who
	}
	groups := sent{microsoft + "groups", "", []string{"Ops", "Dev", "Ops"}}
	overage := sent{"http://schemas.microsoft.com/claims/groups.link", "", []string{"https://graph..."}}
	named := map[string]any{"attributes": map[string]any{"groups": microsoft + "groups"}}
	teams := map[string]any{"teams": map[string]any{"create": true}}
	is.True(with(nil, groups).Groups == nil)
	is.Equal(with(named, groups).Groups, []string{"Dev", "Ops"})
	is.Equal(with(teams, groups).Groups, []string{"Dev", "Ops"})
	is.Equal(
		with(map[string]any{"allow": map[string]any{"groups": []string{"Dev"}}}, groups).Groups,
		[]string{"Dev", "Ops"},
	)
	is.True(with(teams).Groups == nil)
	is.Equal(with(named).Groups, []string{}) // out of all of them
	who := with(named, overage)
	is.True(who.Groups == nil && who.NoGroups != "")
	is.True(with(map[string]any{
		"attributes": map[string]any{"groups": ""},
		"teams":      map[string]any{},
	}, groups).Groups == nil)

	trust := map[string]any{"trustEmail": true}
	verified := func(value string) sent { return sent{"email_verified", "", []string{value}} }
	is.Equal(with(nil).EmailVerified, false)
	is.Equal(with(trust).EmailVerified, true)
	is.Equal(with(nil, verified("true")).EmailVerified, true)
	is.Equal(with(trust, verified("false")).EmailVerified, false)

	is.Equal(with(
		nil, sent{"urn:x", "dept", []string{"R", "D"}}, sent{"urn:y", "mail", []string{"z"}},
	).Claims, map[string][]string{
		"urn:x": {"R", "D"}, "dept": {"R", "D"}, "urn:y": {"z"}, "uid": {"anna"}, "mail": {"a@b.c"},
	})
	var many []sent
	for range 1000 {
		many = append(many, sent{
			"n" + string(rune('a'+len(many)%26)) + string(rune('a'+len(many)/26)), "", []string{"v"},
		})
	}
	is.Equal(len(with(nil, many...).Claims), 256)
}
