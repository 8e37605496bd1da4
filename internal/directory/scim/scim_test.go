package scim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

var (
	monday = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	corp   = scim.Client{Tenant: "acme", Domain: "corp"}
)

// fixture has the services over an empty database.
type fixture struct {
	*scim.Service
	people *principals.Service
	store  *bunstore.Store
}

// each runs a test on each database.
func each(t *testing.T, test func(t *testing.T, f fixture)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		store := bunstore.New(open(t))
		people := principals.New(principals.Options{
			Store: store,
			Cost:  principals.Cost{Memory: 8, Time: 1, Threads: 1},
		})
		test(t, fixture{scim.New(scim.Options{Store: store, Principals: people.Unchecked(), Now: func() time.Time {
			return monday
		}, Log: slog.New(slog.DiscardHandler)}), people, store})
	})
}

// user returns the change of a body with more members after the name.
func user(t *testing.T, name, more string) scim.UserChange {
	t.Helper()
	change, err := scim.ReplaceUser([]byte(fmt.Sprintf(
		`{"schemas": [%q], "userName": %q%s}`, scim.UserSchema, name, more,
	)))
	is.New(t).NoErr(err)
	return change
}

func (f fixture) add(t *testing.T, name, more string) scim.User {
	t.Helper()
	u, err := f.CreateUser(t.Context(), corp, user(t, name, more))
	is.New(t).NoErr(err)
	return u
}

func operations(t *testing.T, all ...string) []scim.Operation {
	t.Helper()
	parsed, err := parse(all...)
	is.New(t).NoErr(err)
	return parsed
}

func parse(all ...string) ([]scim.Operation, error) {
	return scim.ParsePatch([]byte(fmt.Sprintf(
		`{"schemas": [%q], "Operations": [%s]}`, scim.PatchMessage, strings.Join(all, ", "),
	)))
}

func (f fixture) patch(t *testing.T, id string, all ...string) (scim.User, error) {
	t.Helper()
	return f.UpdateUser(t.Context(), corp, id, nil, scim.PatchUser(operations(t, all...)), false)
}

func (f fixture) group(t *testing.T, name string, members ...string) scim.Group {
	t.Helper()
	g, err := f.CreateGroup(t.Context(), corp, group(t, name, "", members...))
	is.New(t).NoErr(err)
	return g
}

func group(t *testing.T, name, externalID string, members ...string) scim.GroupChange {
	t.Helper()
	var all []string
	for _, id := range members {
		all = append(all, fmt.Sprintf(`{"value": %q}`, id))
	}
	change, err := scim.ReplaceGroup([]byte(fmt.Sprintf(
		`{"schemas": [%q], "displayName": %q, "externalId": %q, "members": [%s]}`, scim.GroupSchema, name,
		externalID, strings.Join(all, ", "),
	)))
	is.New(t).NoErr(err)
	return change
}

func (f fixture) patchGroup(t *testing.T, id string, all ...string) (scim.Group, error) {
	t.Helper()
	return f.UpdateGroup(t.Context(), corp, id, nil, scim.PatchGroup(operations(t, all...)), true)
}

func typeOf(err error) scim.ErrorType {
	var typed *scim.Error
	if errors.As(err, &typed) {
		return typed.Type
	}
	return ""
}

// TestPatchUser has the operations of RFC 7644, of Entra and of Okta.
func TestPatchUser(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is := is.New(t)
		id := f.add(
			t, "babs",
			`, "displayName": "Babs", "name": {"givenName": "Barbara", "familyName": "Jensen"}, "emails": `+
				`[{"value": "babs@jensen.org", "type": "home"}]`,
		).ID
		for _, c := range []struct {
			operation string
			is        func(u scim.User) bool
		}{
			{`{"op": "add", "value": {"emails": [{"value": "babs@example.com", "type": "home"}], "nickName": "Babs"}}`,
				func(u scim.User) bool {
					return u.Email == "babs@jensen.org"
				}},
			{`{"op": "add", "path": "emails", "value": [{"value": "b@example.com", "type": "home"}, {"value": ` +
				`"babs@example.com", "type": "work"}]}`,
				func(u scim.User) bool {
					return u.Email == "babs@example.com"
				}},
			{`{"op": "replace", "path": "emails", "value": [{"value": "a@example.com", "type": "work"}, {"value": ` +
				`"p@example.com", "type": "home", "primary": "True"}]}`,
				func(u scim.User) bool {
					return u.Email == "p@example.com"
				}},
			{`{"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "w@example.com"}`,
				func(u scim.User) bool {
					return u.Email == "w@example.com"
				}},
			{`{"op": "Replace", "path": "emails[type eq \"home\"].value", "value": "h@example.com"}`,
				func(u scim.User) bool {
					return u.Email == "w@example.com"
				}},
			{`{"op": "replace", "path": "emails[value eq \"w@example.com\"]", "value": {"type": "work", "value": ` +
				`"x@example.com", "primary": true}}`,
				func(u scim.User) bool {
					return u.Email == "x@example.com"
				}},
			{`{"op": "remove", "path": "emails[type eq \"work\" and value ew \"example.com\"]"}`,
				func(u scim.User) bool {
					return u.Email == ""
				}},
			{`{"op": "Add", "path": "emails[type eq \"work\"].value", "value": "again@example.com"}`,
				func(u scim.User) bool {
					return u.Email == "again@example.com"
				}},
			{`{"op": "replace", "path": "name.familyName", "value": "Smith"}`, func(u scim.User) bool {
				return u.FamilyName == "Smith" && u.GivenName == "Barbara"
			}},
			{`{"op": "replace", "path": "name", "value": {"middleName": "Jane", "honorificPrefix": "Ms"}}`,
				func(u scim.User) bool {
					return u.Formatted() == "Barbara Jane Smith"
				}},
			{`{"op": "remove", "path": "name.middleName"}`, func(u scim.User) bool { return u.MiddleName == "" }},
			{`{"op": "Replace", "value": {"name.givenName": "Barb", "emails[type eq \"work\"].value": ` +
				`"barb@example.com", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department": "R&D"}}`,
				func(u scim.User) bool { return u.GivenName == "Barb" && u.Email == "barb@example.com" }},
			{`{"op": "replace", "value": {"urn:ietf:params:scim:schemas:core:2.0:User": {"displayName": "B."}, ` +
				`"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"manager": {"value": "x"}}}}`,
				func(u scim.User) bool { return u.DisplayName == "B." }},
			{`{"op": "add", "path": "urn:ietf:params:scim:schemas:core:2.0:User:externalId", "value": "e-1"}`,
				func(u scim.User) bool {
					return u.ExternalID == "e-1"
				}},
			{`{"op": "add", "path": "addresses[type eq \"work\"].formatted", "value": "Street 1"}`,
				func(u scim.User) bool {
					return true
				}},
			{`{"op": "Replace", "path": "manager", "value": "x"}`, nil},
			{`{"op": "replace", "path": "timezone", "value": "Europe/Berlin"}`, func(u scim.User) bool {
				return u.Timezone == "Europe/Berlin"
			}},
			// ignored
			{`{"op": "replace", "path": "timezone", "value": "W. Europe Standard Time"}`, func(u scim.User) bool {
				return u.Timezone == "Europe/Berlin"
			}},
			{`{"op": "replace", "path": "displayName", "value": null}`, func(u scim.User) bool {
				return u.DisplayName == ""
			}},
			{`{"op": "Replace", "path": "active", "value": "False"}`, func(u scim.User) bool { return !u.Active }},
			{`{"op": "replace", "value": {"id": "x", "active": true, "schemas": [], "meta": {}, "groups": []}}`,
				func(u scim.User) bool {
					return u.Active
				}},
			{`{"op": "replace", "path": "userName", "value": "barb"}`, func(u scim.User) bool {
				return u.UserName == "barb"
			}},
			{`{"op": "replace", "path": "userName", "value": "Barb"}`, func(u scim.User) bool {
				return u.UserName == "Barb"
			}},
		} {
			u, err := f.patch(t, id, c.operation)
			if c.is == nil {
				is.Equal(typeOf(err), scim.InvalidPath)
				continue
			}
			if err != nil || !c.is(u) || u.ID != id {
				t.Errorf("%s: %+v %v", c.operation, u, err)
			}
		}
		stored, err := f.User(t.Context(), corp, strings.ToUpper(id), true)
		is.NoErr(err)
		is.Equal(stored.UserName, "Barb")
		is.Equal(stored.ExternalID, "e-1")
		is.Equal(stored.Groups, []scim.Ref{})
	})
}

func TestPatchIsAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is := is.New(t)
		was := f.add(t, "anna", `, "displayName": "Anna"`)
		for operation, want := range map[string]scim.ErrorType{
			`{"op": "replace", "path": "id", "value": "x"}`:                                        scim.Mutability,
			`{"op": "replace", "path": "groups", "value": []}`:                                     scim.Mutability,
			`{"op": "add", "path": "meta.created", "value": "x"}`:                                  scim.Mutability,
			`{"op": "remove", "path": "userName"}`:                                                 scim.Mutability,
			`{"op": "replace", "path": "userName", "value": null}`:                                 scim.InvalidValue,
			`{"op": "replace", "path": "userName", "value": "everyone"}`:                           scim.InvalidValue,
			`{"op": "replace", "path": "displayName", "value": 5}`:                                 scim.InvalidValue,
			`{"op": "replace", "path": "displayName", "value": "a\tb"}`:                            scim.InvalidValue,
			`{"op": "replace", "path": "emails", "value": "x"}`:                                    scim.InvalidSyntax,
			`{"op": "replace", "path": "emails[value eq \"no@x.org\"].value", "value": "a@x.org"}`: scim.NoTarget,
			`{"op": "replace", "path": "name[x eq 1]", "value": "a"}`:                              scim.InvalidPath,
			`{"op": "replace", "path": "superuser", "value": true}`:                                scim.InvalidPath,
			`{"op": "replace", "value": []}`:                                                       scim.InvalidSyntax,
			`{"op": "replace", "path": "externalId", "value": "` + strings.Repeat("x", 256) + `"}`: scim.InvalidValue,
		} {
			_, err := f.patch(t, was.ID, `{"op": "replace", "path": "displayName", "value": "Changed"}`, operation)
			if typeOf(err) != want || errs.CodeOf(err) != errs.Invalid {
				t.Errorf("%s: %v", operation, err)
			}
		}
		now, err := f.User(t.Context(), corp, was.ID, false)
		is.NoErr(err)
		is.Equal(now.Version(), was.Version())
		for _, body := range []string{
			"", "[]", "{}", "null", `{"schemas": ["x"], "Operations": [{"op": "add", "value": {}}]}`,
		} {
			_, err := scim.ParsePatch([]byte(body))
			is.Equal(typeOf(err), scim.InvalidSyntax)
		}
		for _, operation := range []string{
			`{}`, `{"op": "move"}`, `{"op": "replace"}`, `{"op": "remove"}`, `5`, `{"op": 5}`,
			`{"op": "add", "path": 5, "value": 1}`, `{"op": "add", "OP": "add"}`, ``,
		} {
			_, err := parse(operation)
			is.True(typeOf(err) != "")
		}
		_, err = parse(slices.Repeat([]string{`{"op": "add", "path": "displayName", "value": "x"}`}, 10_000)...)
		is.Equal(typeOf(err), scim.InvalidValue)
	})
}

// TestActive: a provider disables and enables users as a scan does.
func TestActive(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, root := is.New(t), actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "root", Superuser: true})
		off, on := `{"op": "replace", "path": "active", "value": false}`,
			`{"op": "replace", "path": "active", "value": true}`
		id := f.add(t, "anna", "").ID
		enable := func(enabled bool) {
			_, err := f.people.UpdateUser(root, "anna", func(u *principals.User) error {
				u.Enabled = enabled
				return nil
			})
			is.NoErr(err)
		}
		active := func(operation string) bool {
			u, err := f.patch(t, id, operation)
			is.NoErr(err)
			return u.Active
		}
		is.True(!active(off))
		is.True(active(on))
		enable(false)
		is.True(!active(on)) // a user that a superuser has disabled stays disabled
		is.True(!active(off))
		is.True(!active(on))
		enable(true)
		_, err := f.people.UpdateUser(root, "anna", func(u *principals.User) error { u.Superuser = true; return nil })
		is.NoErr(err)
		_, err = f.patch(t, id, off)
		is.Equal(errs.CodeOf(err), errs.Conflict) // the last superuser
		is.Equal(errs.CodeOf(f.DeleteUser(t.Context(), corp, id, nil)), errs.Conflict)
		u, err := f.people.User(root, "anna")
		is.NoErr(err)
		is.True(u.Enabled && u.Superuser && *u.Source == scim.Source && u.SourceID == nil)
		_, err = f.people.CreateUser(root, principals.User{Username: "other", Enabled: true, Superuser: true}, "")
		is.NoErr(err)
		is.True(!active(off))
	})
}

// TestDeletedUser: a deleted user is 404, and becomes the same user again with a POST of the name.
func TestDeletedUser(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		anna, bob := f.add(t, "anna", `, "externalId": "e", "displayName": "Anna"`), f.add(t, "bob", "")
		g := f.group(t, "Sales", anna.ID, bob.ID)
		is.NoErr(f.DeleteUser(ctx, corp, anna.ID, nil))
		_, err := f.User(ctx, corp, anna.ID, false)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = f.patch(t, anna.ID, `{"op": "replace", "path": "active", "value": true}`)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		for _, filter := range []string{
			"", `userName eq "anna"`, `externalId eq "e"`, `id eq "` + anna.ID + `"`, `displayName eq "Anna"`,
		} {
			page, err := f.Users(ctx, corp, scim.Query{Filter: filter, Count: 10}, false)
			is.NoErr(err)
			is.True(!slices.ContainsFunc(page.Items, func(u scim.User) bool { return u.UserName == "anna" }))
		}
		g, err = f.Group(ctx, corp, g.ID, true)
		is.NoErr(err)
		is.Equal(g.Members, []scim.Ref{{ID: bob.ID, Display: "bob"}})
		_, err = f.patchGroup(t, g.ID, `{"op": "add", "path": "members", "value": [{"value": "`+anna.ID+`"}]}`)
		is.Equal(typeOf(err), scim.InvalidValue)

		row, err := f.store.User(ctx, "acme", "anna")
		is.NoErr(err)
		is.True(!row.Enabled && row.DirectoryDisabled) // the row is kept
		again := f.add(t, "Anna", `, "externalId": "f"`)
		is.Equal(again.ID, anna.ID)
		is.True(again.Active && again.UserName == "Anna" && again.ExternalID == "f" && again.DisplayName == "")
		groups, err := f.store.UserGroups(ctx, "acme", "corp", []string{"Anna"})
		is.NoErr(err)
		is.Equal(len(groups), 0) // not the former groups of the provider
	})
}

// TestLogin: the first login assigns a user by name, and changes neither name nor profile.
func TestLogin(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		anna := f.add(t, "anna", `, "displayName": "Anna"`)
		for range 2 {
			u, err := f.people.Unchecked().Admit(ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{
				ID:          "sub-1",
				Username:    "anna",
				DisplayName: "A. B.",
				Email:       "a@x.org",
			})
			is.NoErr(err)
			is.Equal(*u.DisplayName, "Anna")
			is.Equal(*u.SourceID, "sub-1")
			is.Equal(u.Email, nil)
		}
		u, err := f.people.Unchecked().Admit(
			ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{ID: "sub-1", Username: "anna.b"},
		)
		is.NoErr(err)
		is.Equal(u.Username, "anna") // the provider of SCIM sets the name
		_, err = f.people.Unchecked().Admit(
			ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{ID: "sub-2", Username: "anna"},
		)
		is.Equal(errs.CodeOf(err), errs.Unauthenticated) // another user
		_, err = f.patch(t, anna.ID, `{"op": "replace", "path": "userName", "value": "anne"}`)
		is.NoErr(err)
		u, err = f.people.Unchecked().Admit(
			ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{ID: "sub-1", Username: "anna"},
		)
		is.NoErr(err)
		is.Equal(u.Username, "anne")
		is.NoErr(f.DeleteUser(ctx, corp, anna.ID, nil))
		_, err = f.people.Unchecked().Admit(
			ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{ID: "sub-1", Username: "anne"},
		)
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)

		// A user that is older than SCIM is found, and belongs to the provider from its first
		// change on.
		_, err = f.people.Unchecked().Admit(
			ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{ID: "sub-3", Username: "carl", DisplayName: "Carl"},
		)
		is.NoErr(err)
		page, err := f.Users(ctx, corp, scim.Query{Filter: `userName eq "carl"`, Count: 1}, true)
		is.NoErr(err)
		is.Equal(page.Total, 1)
		is.True(page.Items[0].ID != "")
		again, err := f.Users(ctx, corp, scim.Query{Count: 1}, true)
		is.NoErr(err)
		is.Equal(again.Items[0].ID, page.Items[0].ID)
		_, err = f.patch(t, page.Items[0].ID, `{"op": "replace", "path": "displayName", "value": "Karl"}`)
		is.NoErr(err)
		u, err = f.people.Unchecked().Admit(
			ctx, "acme", principals.Source{
				Domain: "corp", Driver: "OIDC",
			}, principals.Identity{ID: "sub-3", Username: "carl", DisplayName: "Carl"},
		)
		is.NoErr(err)
		is.Equal(*u.DisplayName, "Karl")
	})
}

func TestNames(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		is.NoErr(f.store.InsertUser(ctx, "acme", principals.User{
			Username:   "root",
			Domain:     principals.Local,
			Data:       json.RawMessage("{}"),
			UserFields: json.RawMessage("{}"),
			CreatedAt:  monday,
			UpdatedAt:  monday,
		}))
		anna, bob := f.add(t, "anna", ""), f.add(t, "o'brien & co", "")
		for _, name := range []string{"ANNA", "ａｎｎａ", "root", "ROOT"} {
			_, err := f.CreateUser(ctx, corp, user(t, name, ""))
			is.Equal(errs.CodeOf(err), errs.Conflict)
			is.Equal(typeOf(err), scim.Uniqueness)
			_, err = f.patch(t, bob.ID, fmt.Sprintf(`{"op": "replace", "path": "userName", "value": %q}`, name))
			is.Equal(typeOf(err), scim.Uniqueness)
		}
		_, err := f.patch(t, anna.ID, `{"op": "replace", "path": "userName", "value": "Anna"}`) // the user's own name
		is.NoErr(err)
		// names of another tenant are free
		_, err = f.CreateUser(ctx, scim.Client{Tenant: "evil", Domain: "corp"}, user(t, "anna", ""))
		is.NoErr(err)
		for _, name := range []string{
			"", " ", "a/b", "everyone", "*", "01932e00-0000-7000-8000-000000000001", strings.Repeat("x", 257),
		} {
			_, err := f.CreateUser(ctx, corp, user(t, name, ""))
			if typeOf(err) != scim.InvalidValue {
				t.Errorf("%.40q: %v", name, err)
			}
		}
	})
}

// TestGroups has the changes of members that providers send.
func TestGroups(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		a, b, c := f.add(t, "anna", "").ID, f.add(t, "bob", "").ID, f.add(t, "carl", "").ID
		g := f.group(t, "Sales", a)
		root := actor.With(ctx, actor.Actor{Tenant: "acme", User: "root", Superuser: true})
		_, err := f.people.PutMember(root, g.ID, "anna", actor.Admin)
		is.NoErr(err)
		ref := func(id string) string { return `{"value": "` + id + `"}` }
		for _, step := range []struct {
			operations []string
			want       []string
		}{
			{
				[]string{`{"op": "Add", "path": "members", "value": [` + ref(b) + `, ` + ref(strings.ToUpper(c)) +
					`]}`},
				[]string{a, b, c},
			},
			{[]string{`{"op": "Remove", "path": "members", "value": [` + ref(b) + `]}`}, []string{a, c}},
			{[]string{`{"op": "remove", "path": "members[value eq \"` + c + `\"]"}`}, []string{a}},
			{[]string{`{"op": "remove", "path": "members[value eq \"` + c + `\"]"}`}, []string{a}}, // not a member
			{[]string{`{"op": "add", "value": {"members": [` + ref(b) + `]}}`}, []string{a, b}},
			{[]string{`{"op": "add", "path": "members", "value": ` + ref(c) + `}`}, []string{a, b, c}},
			{
				[]string{
					`{"op": "remove", "path": "members[value eq \"` + b + `\" or value eq \"` + c + `\"]"}`,
					`{"op": "add", "path": "members", "value": [` + ref(c) + `]}`,
				},
				[]string{a, c},
			},
			{
				[]string{`{"op": "replace", "path": "members", "value": [` + ref(a) + `, ` + ref(b) + `]}`},
				[]string{a, b},
			},
			{
				[]string{`{"op": "replace", "value": {"members": [` + ref(a) + `], "displayName": "Sales"}}`},
				[]string{a},
			},
			{
				[]string{
					`{"op": "add", "path": "members", "value": [` + ref(b) + `]}`,
					`{"op": "remove", "path": "members", "value": [` + ref(b) + `]}`,
				},
				[]string{a},
			},
		} {
			g, err = f.patchGroup(t, g.ID, step.operations...)
			var got []string
			for _, m := range g.Members {
				got = append(got, m.ID)
			}
			if err != nil || !slices.Equal(got, step.want) {
				t.Fatalf("%s: %v %v", step.operations, got, err)
			}
		}
		m, err := f.people.Member(root, g.ID, "anna")
		is.NoErr(err)
		is.Equal(m.Role, actor.Admin) // she was a member all the time
		g, err = f.patchGroup(t, g.ID, `{"op": "remove", "path": "members"}`)
		is.NoErr(err)
		is.Equal(len(g.Members), 0)

		// Users of other domains are not changed by the provider.
		_, err = f.people.CreateUser(root, principals.User{Username: "local", Enabled: true}, "")
		is.NoErr(err)
		_, err = f.people.PutMember(root, g.ID, "local", actor.Member)
		is.NoErr(err)
		other, err := f.CreateUser(ctx, scim.Client{Tenant: "acme", Domain: "side"}, user(t, "eve", ""))
		is.NoErr(err)
		for _, id := range []string{other.ID, g.ID, "anna", "", "01932e00-0000-7000-8000-000000000001"} {
			_, err = f.patchGroup(t, g.ID, `{"op": "add", "path": "members", "value": [`+ref(id)+`, `+ref(a)+`]}`)
			is.Equal(typeOf(err), scim.InvalidValue)
		}
		_, err = f.patchGroup(
			t, g.ID, `{"op": "add", "path": "members", "value": [{"value": "`+a+`", "type": "Group"}]}`,
		)
		is.Equal(typeOf(err), scim.InvalidValue)
		for operation, want := range map[string]scim.ErrorType{
			`{"op": "replace", "path": "members[value eq \"` + a + `\"].display", "value": "x"}`: scim.Mutability,
			`{"op": "remove", "path": "members[display eq \"x\"]"}`:                              scim.InvalidFilter,
			`{"op": "remove", "path": "displayName"}`:                                            scim.Mutability,
			`{"op": "replace", "path": "displayName", "value": " "}`:                             scim.InvalidValue,
			`{"op": "replace", "path": "id", "value": "x"}`:                                      scim.Mutability,
			`{"op": "replace", "path": "slug", "value": "x"}`:                                    scim.InvalidPath,
		} {
			_, err = f.patchGroup(t, g.ID, operation)
			if typeOf(err) != want {
				t.Errorf("%s: %v", operation, err)
			}
		}
		is.NoErr(f.DeleteGroup(ctx, corp, g.ID, nil))
		_, err = f.Group(ctx, corp, g.ID, false)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = f.people.Member(root, g.ID, "local")
		is.NoErr(err) // the team exists, with the members of other domains
		is.Equal(f.group(t, "Sales").ID, g.ID)
		g, err = f.Group(ctx, corp, g.ID, true)
		is.NoErr(err)
		is.Equal(len(g.Members), 0)
	})
}

func TestFormerGroups(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		create := func(name, externalID string) scim.Group {
			g, err := f.CreateGroup(ctx, corp, group(t, name, externalID))
			is.NoErr(err)
			return g
		}
		one := create("Sales", "g1")
		_, err := f.CreateGroup(ctx, corp, group(t, "SALES", "g2"))
		is.Equal(typeOf(err), scim.Uniqueness)
		_, err = f.UpdateGroup(ctx, corp, create("Art", "").ID, nil, group(t, "sales", ""), false)
		is.Equal(typeOf(err), scim.Uniqueness)
		is.NoErr(f.DeleteGroup(ctx, corp, one.ID, nil))
		is.True(create("Sales", "g2").ID != one.ID) // another group with the name does not get the team's content
		is.Equal(create("Sales 2", "g1").ID, one.ID)
		other, err := f.CreateGroup(ctx, scim.Client{Tenant: "acme", Domain: "side"}, group(t, "Sales", "g1"))
		is.NoErr(err)
		is.True(other.ID != one.ID)
	})
}

func TestLists(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		var ids []string
		for n := range 25 {
			ids = append(
				ids,
				f.add(
					t, fmt.Sprintf("user-%02d", n),
					fmt.Sprintf(`, "externalId": "e%d", "displayName": "Name %02d", "active": %v`, n, 99-n, n%2 == 0),
				).ID,
			)
		}
		g := f.group(t, "Sales", ids[3], ids[4])
		f.group(t, "Art", ids[3])
		for _, c := range []struct {
			q     scim.Query
			total int
			first string
			n     int
		}{
			{scim.Query{Count: 10}, 25, "user-00", 10},
			{scim.Query{Start: 21, Count: 10}, 25, "user-20", 5}, {scim.Query{Start: 26, Count: 10}, 25, "", 0},
			{scim.Query{Start: -5, Count: -1}, 25, "", 0},
			{scim.Query{Count: 1 << 40}, 25, "user-00", 25}, {scim.Query{Start: 1 << 40, Count: 1}, 25, "", 0},
			{scim.Query{SortBy: "displayName", Count: 2}, 25, "user-24", 2},
			{scim.Query{SortBy: "userName", Descending: true, Start: 2, Count: 2}, 25, "user-23", 2},
			{scim.Query{SortBy: "title", Count: 1}, 25, "user-00", 1},
			{scim.Query{SortBy: "active", Descending: true, Start: 13, Count: 2}, 25, "user-24", 2},
			{scim.Query{Filter: "active eq false", Start: 2, Count: 3}, 12, "user-03", 3},
			{scim.Query{Filter: `userName eq "USER-07"`, Count: 3}, 1, "user-07", 1},
			{scim.Query{Filter: `externalId eq "e9" and active eq true`, Count: 3}, 0, "", 0},
			{scim.Query{Filter: `id eq "` + ids[5] + `"`, Count: 3}, 1, "user-05", 1},
			{scim.Query{Filter: `id eq "x"`, Count: 3}, 0, "", 0},
			{scim.Query{Filter: `groups.value eq "` + g.ID + `"`, Count: 5}, 2, "user-03", 2},
			{scim.Query{Filter: `groups eq "` + ids[0] + `"`, Count: 5}, 0, "", 0},
			{scim.Query{Filter: `not (groups.value eq "` + g.ID + `") and active eq true`, Count: 1}, 12, "user-00", 1},
		} {
			page, err := f.Users(ctx, corp, c.q, true)
			if err != nil || page.Total != c.total || len(page.Items) != c.n || c.n > 0 &&
				page.Items[0].UserName != c.first {
				t.Errorf("%+v: %d of %d, %v", c.q, len(page.Items), page.Total, err)
			}
		}
		for filter, want := range map[string]int{
			`members.value eq "` + ids[3] + `"`: 2, `members[value eq "` + ids[4] + `"]`: 1,
			`members eq "` + ids[4] + `" and displayName sw "s"`: 1,
			`members.value eq "x"`:                               0, `displayName eq "ART"`: 1,
			`externalId pr`: 0,
			`id eq "` + g.ID + `" and not (members.value eq "` + ids[5] + `")`: 1,
			`meta.lastModified ge "2026-11-16T09:00:00Z"`:                      2,
		} {
			page, err := f.Groups(ctx, corp, scim.Query{Filter: filter, Count: 10}, true)
			if err != nil || page.Total != want {
				t.Errorf("%s: %d %v", filter, page.Total, err)
			}
		}
		for _, q := range []scim.Query{{SortBy: "shoeSize"}, {SortBy: "groups"}, {Filter: "x"}, {SortBy: "a b"}} {
			_, err := f.Users(ctx, corp, q, false)
			is.True(typeOf(err) != "")
		}
		for _, filter := range []string{
			`members.value sw "` + ids[3][:5] + `"`, `members ne "` + ids[3] + `"`, `members pr`,
			`members[value co "x"]`, `members.value eq 3`, `members.display eq "Ann"`,
			`not (members.value gt "` + ids[3] + `")`,
		} {
			_, err := f.Groups(ctx, corp, scim.Query{Filter: filter}, false)
			is.Equal(typeOf(err), scim.InvalidFilter)
		}
		many := strings.TrimSuffix(strings.Repeat(`members.value eq "`+ids[0]+`" or `, 17), " or ")
		_, err := f.Groups(ctx, corp, scim.Query{Filter: many}, false)
		is.Equal(typeOf(err), scim.TooMany)
	})
}

// TestTwoPatches: two concurrent changes are both made.
func TestTwoPatches(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, ctx := is.New(t), t.Context()
		var ids []string
		for n := range 10 {
			ids = append(ids, f.add(t, fmt.Sprintf("user-%d", n), "").ID)
		}
		g := f.group(t, "Sales")
		var all sync.WaitGroup
		failures := make(chan error, 3*len(ids))
		for n, id := range ids {
			all.Go(func() {
				change, err := parse(`{"op": "add", "path": "members", "value": [{"value": "` + id + `"}]}`)
				if err == nil {
					_, err = f.UpdateGroup(ctx, corp, g.ID, nil, scim.PatchGroup(change), false)
				}
				failures <- err
			})
			all.Go(func() {
				change, err := parse(fmt.Sprintf(`{"op": "replace", "path": "name.givenName", "value": "G%d"}`, n))
				if err == nil {
					_, err = f.UpdateUser(ctx, corp, ids[0], nil, scim.PatchUser(change), false)
				}
				failures <- err
			})
			all.Go(func() {
				change, err := parse(`{"op": "replace", "path": "name.familyName", "value": "F"}`)
				if err == nil {
					_, err = f.UpdateUser(ctx, corp, ids[0], nil, scim.PatchUser(change), false)
				}
				failures <- err
			})
		}
		all.Wait()
		close(failures)
		for err := range failures {
			is.NoErr(err)
		}
		g, err := f.Group(ctx, corp, g.ID, true)
		is.NoErr(err)
		is.Equal(len(g.Members), len(ids))
		u, err := f.User(ctx, corp, ids[0], false)
		is.NoErr(err)
		is.True(u.FamilyName == "F" && strings.HasPrefix(u.GivenName, "G"))
		stale := func(version string) error { return errs.New(errs.Stale, "%s", version) }
		_, err = f.UpdateUser(ctx, corp, ids[0], stale, user(t, "x", ""), false)
		is.Equal(errs.CodeOf(err), errs.Stale)
		is.Equal(errs.CodeOf(f.DeleteUser(ctx, corp, ids[0], stale)), errs.Stale)
		is.Equal(errs.CodeOf(f.DeleteGroup(ctx, corp, g.ID, stale)), errs.Stale)
	})
}

// counting counts the reads of members.
type counting struct {
	scim.Store
	reads int
}

func (c *counting) GroupMembers(ctx context.Context, tenant, domain string, ids []string) ([]scim.Member, error) {
	c.reads++
	return c.Store.GroupMembers(ctx, tenant, domain, ids)
}

// TestLargeGroupSize: adding a member to a group of 10,000 reads none of the others.
func TestLargeGroupSize(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		const many = 10_000
		is, ctx := is.New(t), t.Context()
		var rows []principals.DirectoryUser
		var members []principals.Membership
		g, one := f.group(t, "All"), f.add(t, "one", "")
		for n := range many {
			name := fmt.Sprintf("user-%05d", n)
			rows, members = append(
				rows, principals.DirectoryUser{Username: name, Enabled: true},
			), append(
				members,
				principals.Membership{TeamID: g.ID, Username: name, Role: actor.Member, CreatedAt: monday},
			)
		}
		is.NoErr(f.store.AddDirectoryUsers(ctx, "acme", "corp", rows, monday))
		is.NoErr(f.store.AddMembers(ctx, "acme", members))
		store := &counting{Store: f.store}
		s := scim.New(scim.Options{Store: store, Principals: f.people.Unchecked()})
		_, err := s.UpdateGroup(
			ctx, corp, g.ID, nil,
			scim.PatchGroup(operations(t, `{"op": "add", "path": "members", "value": [{"value": "`+one.ID+`"}]}`)),
			false,
		)
		is.NoErr(err)
		is.Equal(store.reads, 0)
		g, err = s.Group(ctx, corp, g.ID, true)
		is.NoErr(err)
		is.Equal(len(g.Members), many+1)
		for _, m := range g.Members {
			is.True(m.ID != "")
		}
		page, err := s.Users(
			ctx, corp, scim.Query{Filter: `displayName co "9" or userName ew "9"`, Start: 5, Count: 3}, true,
		)
		is.NoErr(err)
		is.Equal(page.Total, many/10)
		is.Equal(page.Items[0].UserName, "user-00049")
		is.Equal(page.Items[0].Groups, []scim.Ref{{ID: g.ID, Display: "All"}})
	})
}

// counted is a store that counts the look-ups of slugs.
type counted struct {
	*bunstore.Store
	slugs int
}

func (c *counted) Team(ctx context.Context, tenant, key string) (principals.Team, error) {
	c.slugs++
	return c.Store.Team(ctx, tenant, key)
}

func (c *counted) Slugs(ctx context.Context, tenant string) ([]string, error) {
	c.slugs++
	return c.Store.Slugs(ctx, tenant)
}

// TestSlugsOfGroups: groups and teams whose names result in the same slug get numbered ones. The
// last of many takes no more statements than the second.
func TestSlugsOfGroups(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		is, store := is.New(t), &counted{Store: f.store}
		people := principals.New(principals.Options{
			Store: store,
			Cost:  principals.Cost{Memory: 8, Time: 1, Threads: 1},
		})
		service := scim.New(scim.Options{
			Store:      store,
			Principals: people.Unchecked(),
			Log:        slog.New(slog.DiscardHandler),
		})
		admin := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
		const groups = 20
		for i := range groups / 2 {
			change, err := scim.ReplaceGroup([]byte(fmt.Sprintf(
				`{"schemas": [%q], "displayName": "東京 %c"}`, scim.GroupSchema, 'あ'+2*i,
			)))
			is.NoErr(err)
			_, err = service.CreateGroup(t.Context(), corp, change)
			is.NoErr(err)
			_, err = people.CreateTeam(admin, principals.Team{Name: fmt.Sprintf("大阪 %c", 'あ'+2*i)})
			is.NoErr(err)
		}
		is.Equal(store.slugs, 2*groups-1)
		slugs, err := f.store.Slugs(t.Context(), "acme")
		is.NoErr(err)
		slices.Sort(slugs)
		is.Equal(slices.Compact(slices.Clone(slugs)), slugs)
		is.True(slices.Contains(slugs, "team") && slices.Contains(slugs, fmt.Sprint("team-", groups)))
	})
}

// TestManyUsersSize: in a large domain the requests of Entra and Okta are answered, and filters
// that would read all users are refused.
func TestManyUsersSize(t *testing.T) {
	each(t, func(t *testing.T, f fixture) {
		const many = 20_001
		is, ctx := is.New(t), t.Context()
		rows := make([]principals.DirectoryUser, many)
		for n := range rows {
			rows[n] = principals.DirectoryUser{
				Username: fmt.Sprintf("user-%05d", n),
				Email:    fmt.Sprintf("User-%05d@example.com", n),
				Enabled:  true,
			}
		}
		is.NoErr(f.store.AddDirectoryUsers(ctx, "acme", "corp", rows, monday))
		total := func(filter string) int {
			t.Helper()
			page, err := f.Users(ctx, corp, scim.Query{Filter: filter, Count: 1}, false)
			is.NoErr(err)
			return page.Total
		}
		one := f.add(t, "jo", `, "externalId": "x-1", "emails": [{"value": "jo@example.com", "primary": true}]`)
		g := f.group(t, "Sales", one.ID)
		for _, filter := range []string{
			`userName eq "USER-00007"`, `id eq "` + one.ID + `"`,
			`externalId eq "x-1"`, `emails.value eq "user-00009@example.com"`,
			`emails[type eq "work"].value eq "JO@example.com"`,
			`emails[type eq "work" and value eq "jo@example.com"]`, `emails eq "jo@example.com" and userName eq "jo"`,
			`userName eq "jo" and active eq true`,
		} {
			is.Equal(total(filter), 1)
		}
		is.Equal(total(`emails.value eq "nobody@example.com"`), 0)
		is.Equal(total(`userName eq "jo" and emails.value eq "user-00009@example.com"`), 0)
		for _, filter := range []string{
			`displayName co "jo"`, `active eq true`, `userName sw "jo"`,
			`emails.value co "jo"`, `emails.value eq "jö@example.com"`, `userName eq "jo" or displayName eq "x"`,
			`groups.value eq "` + g.ID + `"`,
		} {
			_, err := f.Users(ctx, corp, scim.Query{Filter: filter, Count: 1}, false)
			is.Equal(typeOf(err), scim.TooMany)
		}
		is.NoErr(f.store.EditDirectoryUsers(ctx, "acme", usernamesOf(rows), monday, func(u *principals.DirectoryUser) {
			u.Email = "all@example.com"
		}))
		_, err := f.Users(ctx, corp, scim.Query{Filter: `emails.value eq "all@example.com"`}, false)
		is.Equal(typeOf(err), scim.TooMany)
		page, err := f.Users(ctx, corp, scim.Query{Count: 1}, false) // without a filter no users are compared
		is.NoErr(err)
		is.Equal(page.Total, many+1)
	})
}

func usernamesOf(rows []principals.DirectoryUser) []string {
	names := make([]string, len(rows))
	for i, u := range rows {
		names[i] = u.Username
	}
	return names
}
