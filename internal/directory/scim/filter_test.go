package scim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

var anna = &User{
	ID: "01932e00-0000-7000-8000-000000000001", ExternalID: "X1", UserName: "Anna@corp.example.com",
	DisplayName: "Ännä \"A\" Berg", GivenName: "Anna", FamilyName: "Berg",
	Email: "anna@corp.example.com", Active: true,
	Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Modified: time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC),
}

func matches(t *testing.T, text string) (bool, error) {
	t.Helper()
	f, err := parseFilter(text)
	if err == nil {
		err = userKinds.check(f)
	}
	if err != nil {
		return false, err
	}
	return (&evaluator{kinds: userKinds, filter: f}).matches(anna), nil
}

func TestFilters(t *testing.T) {
	for text, want := range map[string]bool{
		`userName eq "anna@CORP.example.com"`:          true,
		`username Eq "anna@corp.example.com"`:          true,
		`userName ne "anna@corp.example.com"`:          false,
		`userName sw "anna" AND active EQ True`:        true,
		`userName ew "example.org"`:                    false,
		`userName co "@corp."`:                         true,
		`displayName eq "ÄNNÄ \"a\" berg"`:             true,
		`displayName eq "\u00e4nn\u00C4 \"a\" berg"`:   true,
		`externalId eq "x1"`:                           false,
		`externalId eq "X1"`:                           true,
		`id eq "01932e00-0000-7000-8000-000000000001"`: true,
		`active eq "False"`:                            false,
		`not (active eq false)`:                        true,
		`NOT(active eq true) or userName pr`:           true,
		`title pr`:                                     false,
		`title eq null and timezone eq null`:           true,
		`title ne "x"`:                                 true,
		`nickName eq "x" or name.familyName gt "Beo"`:  true,
		`name.familyName lt "Beo"`:                     false,
		`name pr and name.formatted eq "anna berg"`:    true,
		`emails pr`:                                                                       true,
		`emails eq "anna@corp.example.com"`:                                               true,
		`emails.value eq "ANNA@corp.example.com"`:                                         true,
		`emails[type eq "work" and value co "@corp"]`:                                     true,
		`emails[type eq "home"]`:                                                          false,
		`emails[not (type eq "home")]`:                                                    true,
		`emails[type eq "work"].value eq "x"`:                                             false,
		`emails[primary eq true].value sw "anna"`:                                         true,
		`meta.lastModified gt "2026-11-16T08:00:00Z"`:                                     true,
		`meta.lastModified gt "2026-11-16T10:00:00+01:00"`:                                false,
		`meta.lastModified ge "2026-11-16T10:00:00+01:00"`:                                true,
		`meta.created lt "2026-11-16T00:00:00Z"`:                                          true,
		`urn:ietf:params:scim:schemas:core:2.0:User:userName sw "a"`:                      true,
		`urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department eq "x"`:    false,
		`userName eq "x" or userName eq "y" and active eq true or active eq true`:         true,
		`(userName eq "x" or active eq true) and (active eq false or userName sw "anna")`: true,
		`userName eq "x" and userName eq "y" or active eq true`:                           true,
		`userName eq "x" and (userName eq "y" or active eq true)`:                         false,
		`schemas eq "urn:ietf:params:scim:schemas:core:2.0:User"`:                         true,
		`(emails.type eq "work")and(active eq true)`:                                      true,
		strings.Repeat("(", maxDepth) + `active eq true` + strings.Repeat(")", maxDepth):  true,
		`active eq true` + strings.Repeat(` and active eq true`, 400):                     true,
	} {
		got, err := matches(t, text)
		if err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

func TestInvalidFilters(t *testing.T) {
	for _, text := range []string{
		"", " ", "userName", `userName eq`, `userName is "x"`,
		`userName eq x`, `userName eq "x`, `userName eq "\x"`, `userName eq "\u0000"`, `eq "x"`, `(active eq true`,
		`active eq true)`, `active eq true active eq true`, `active eq true and`,
		`not active eq true`, `emails[type eq "work"`, `emails[type eq "work"]]`,
		`emails[type eq "work"].`, `emails[emails[type eq "x"]]`, `emails.value[type eq "x"]`,
		`shoeSize eq 42`, `active eq "perhaps"`, `active gt true`, `active co "t"`,
		`userName eq 5`, `userName eq true`, `userName gt null`,
		`meta.lastModified gt "yesterday"`, `meta.lastModified co "2026"`, `groups pr`, `groups.value co "x"`,
		`groups.display eq "x"`, `meta.location eq "x"`, `userName eq +5`, `"userName" eq "x"`,
		`user\u0000Name eq "x"`, `name.nothing eq "x"`, `a.b.c eq "x"`, `urn:: eq "x"`,
		strings.Repeat("(", maxDepth+1) + `active eq true` + strings.Repeat(")", maxDepth+1),
		strings.Repeat("(", 4000), strings.Repeat("not (", 1600),
		strings.Repeat("emails[", 1000), `userName eq "` + strings.Repeat("x", maxFilter) + `"`,
	} {
		_, err := matches(t, text)
		typed, ok := err.(*Error)
		if !ok || typed.Type != InvalidFilter || errs.CodeOf(err) != errs.Invalid || len(errs.MessageOf(err)) > 300 {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// FuzzFilter: no filter panics, and a parsed filter compares only attributes.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		`emails[type eq "work" and value co "@x"].value eq "a\u00e9"`, `not (a pr) or b.c ge 1.5e3`,
		`urn:x:User:a eq null`, "((((", `a eq "`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseFilter(text)
		if err == nil && userKinds.check(parsed) == nil {
			(&evaluator{kinds: userKinds, filter: parsed, among: map[*filter]func(resource) bool{}}).matches(&User{})
		}
		_, _ = parseTarget(text)
		_, _ = Select([]string{text}, nil)
	})
}

func TestTargets(t *testing.T) {
	is := is.New(t)
	for text, want := range map[string]Path{
		"members":                      {Attribute: "members"},
		"Name.GivenName":               {Attribute: "name", Sub: "givenname"},
		`emails[type eq "work"].value`: {Attribute: "emails", Sub: "value"},
		`members[value eq "x"]`:        {Attribute: "members"},
		UserSchema + ":userName":       {Attribute: "username"}, UserSchema: {},
	} {
		got, err := parseTarget(text)
		is.NoErr(err)
		is.Equal(got.path, want)
	}
	for _, text := range []string{
		"", " ", "a b", "a.", ".a", "a[", "a[b]", `a[b eq "x"`, `a[b eq "x"]c`, `a[b eq "x"].c.d`,
		`a.b[c eq "x"]`, "ä", "a..b", "urn:a b",
	} {
		_, err := parseTarget(text)
		typed, ok := err.(*Error)
		is.True(ok)
		is.Equal(typed.Type, InvalidPath)
	}
}

func TestSelections(t *testing.T) {
	is := is.New(t)
	resource := func() map[string]any {
		return map[string]any{
			"schemas": []string{UserSchema}, "id": "1",
			"userName": "anna", "name": map[string]any{"givenName": "Anna", "familyName": "Berg"},
			"emails": []map[string]any{{"value": "a@b", "type": "work"}}, "meta": map[string]any{"version": "v"},
		}
	}
	for _, c := range []struct{ attributes, excluded, want string }{
		{"", "", "emails.type emails.value id meta.version name.familyName name.givenName schemas userName"},
		{"userName", "emails", "id schemas userName"},
		{"USERNAME, name.givenname", "", "id name.givenName schemas userName"},
		{"emails.value," + UserSchema + ":name", "", "emails.value id name.familyName name.givenName schemas"},
		{"", "id,schemas,meta,emails.type,name", "emails.value id schemas userName"},
	} {
		s, err := Select([]string{c.attributes}, []string{c.excluded})
		is.NoErr(err)
		r := resource()
		s.Apply(r)
		is.Equal(strings.Join(names(r), " "), c.want)
	}
	_, err := Select([]string{"a b"}, nil)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = Select([]string{strings.Repeat("a,", 101)}, nil)
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

// names returns the names of a resource's attributes, with their parts.
func names(resource map[string]any) (all []string) {
	for name, value := range resource {
		switch value := value.(type) {
		case map[string]any:
			for part := range value {
				all = append(all, name+"."+part)
			}
		case []map[string]any:
			for part := range value[0] {
				all = append(all, name+"."+part)
			}
		default:
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
