package sessions_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// fixedApps are the apps a and b, which everybody may share unless closed, with the role editor.
type fixedApps struct{ closed bool }

func (f *fixedApps) CheckShare(_ context.Context, id string) (string, error) {
	switch {
	case id != "a" && id != "b":
		return "", errs.New(errs.NotFound, "App not found.")
	case f.closed:
		return "", errs.New(errs.Forbidden, "no")
	}
	return id, nil
}

func (f *fixedApps) Sharing(
	ctx context.Context, id string, roles []string, do func(ctx context.Context, id string) error,
) error {
	if _, err := f.CheckShare(ctx, id); err != nil {
		return err
	}
	if slices.ContainsFunc(roles, func(r string) bool { return r != "editor" }) {
		return errs.New(errs.Invalid, "roles")
	}
	return do(ctx, id)
}

func (f *fixedApps) CheckInspect(ctx context.Context, id string) (string, error) {
	return f.CheckShare(ctx, id)
}

func (f *fixedApps) Writing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error {
	return f.Sharing(ctx, id, nil, do)
}

// viewsOf names the tokens that show an app to visitors.
func viewsOf(app string) sessions.TokensOf {
	return sessions.TokensOf{Type: sessions.AppView, EntityID: app}
}

// invited makes a token of the app a and returns its credential.
func (f *fixture) invited(t *testing.T, n sessions.NewToken) (sessions.Token, string) {
	t.Helper()
	n.Roles, n.Access = []string{"editor", "editor"}, []string{"GET colors"}
	made, credential, err := f.CreateToken(f.as(t), viewsOf("a"), n)
	is.New(t).NoErr(err)
	return made, credential
}

func TestVisitor(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		made, credential := f.invited(
			t, sessions.NewToken{Notes: ptr("for the fair"), ExpiresAt: ptr(monday.Add(time.Hour))},
		)
		is.Equal(made.Type, "app-view")
		is.Equal(made.Entity, entity.Key{Kind: "app", ID: "a"})
		is.Equal(string(made.Data), `{"roles":["editor"],"access":["GET colors"]}`)
		page, err := f.Tokens(f.as(t), viewsOf("a"), paging.Query{Limit: 9})
		is.NoErr(err)
		is.Equal(page.Rows, []sessions.Token{made})
		mine, err := f.Tokens(f.as(t), own, paging.Query{Limit: 9})
		is.NoErr(err)
		is.Equal(mine.Total, 0) // it is no personal token

		v, err := f.Unchecked().Visitor(ctx, credential, loopback)
		is.NoErr(err)
		want := sessions.Visitor{Token: made.ID, App: "a",
			Roles: []string{"editor"}, Access: []string{"GET colors"}, Inviter: actor.Actor{
				Tenant: "acme", User: "jo", Superuser: true, AI: true, ReadOnly: true, Token: made.ID,
			}}
		is.Equal(v, want)
		again, err := f.Unchecked().ResumeVisitor(ctx, "acme", made.ID, loopback)
		is.NoErr(err)
		is.Equal(again, want)
		counted, err := f.Token(f.as(t), viewsOf("a"), strings.ToUpper(made.ID))
		is.NoErr(err)
		is.Equal(counted.Requests, int64(2))

		f.now = monday.Add(time.Hour)
		_, err = f.Unchecked().Visitor(ctx, credential, loopback)
		refused(t, err)
		_, err = f.Unchecked().ResumeVisitor(ctx, "acme", made.ID, loopback)
		refused(t, err)
		f.now = monday
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), viewsOf("b"), made.ID)), errs.NotFound)
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), own, made.ID)), errs.NotFound)
		is.NoErr(f.DeleteToken(f.as(t), viewsOf("a"), made.ID))
		_, err = f.Unchecked().Visitor(ctx, credential, loopback)
		refused(t, err)
		_, err = f.Unchecked().ResumeVisitor(ctx, "acme", made.ID, loopback)
		refused(t, err)
	})
}

// TestVisitorIsNobody: the credential of a visitor authenticates nobody, and that of a user is no
// visitor's.
func TestVisitorIsNobody(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx := t.Context()
		made, credential := f.invited(t, sessions.NewToken{})
		personal, key := f.token(t, sessions.NewToken{})
		for _, bad := range []string{credential, "tct" + credential[3:]} {
			_, err := f.Authenticate(ctx, bad, loopback)
			refused(t, err)
		}
		_, err := f.Unchecked().Resume(ctx, "acme", "tct."+made.ID, loopback)
		refused(t, err)
		parts := strings.Split(credential, ".")
		for name, bad := range map[string]string{
			"none": "", "a session": f.login(t).Token,
			"a personal token": key, "a personal token as one of an app": "tcv" + key[3:],
			"another secret":     strings.Join([]string{"tcv", "acme", made.ID, parts[3][1:] + parts[3][:1]}, "."),
			"no secret":          strings.TrimSuffix(credential, parts[3]),
			"the hash":           strings.Join([]string{"tcv", "acme", made.ID, made.SecretHash}, "."),
			"another tenant":     strings.Replace(credential, "acme", "evil", 1),
			"an id that is none": strings.Replace(credential, made.ID, "x", 1),
			"a long one":         credential + strings.Repeat("x", 600), "NUL": credential + "\x00",
		} {
			t.Run(name, func(t *testing.T) {
				_, err := f.Unchecked().Visitor(ctx, bad, loopback)
				refused(t, err)
			})
		}
		_, err = f.Unchecked().ResumeVisitor(ctx, "acme", personal.ID, loopback)
		refused(t, err)
		_, err = f.Unchecked().ResumeVisitor(ctx, "evil", made.ID, loopback)
		refused(t, err)
	})
}

func TestAppTokenRefuses(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		made, _ := f.invited(t, sessions.NewToken{})
		token := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true, Token: "x"})
		create := func(ctx context.Context, app string, n sessions.NewToken, roles ...string) errs.Code {
			n.Roles = roles
			_, _, err := f.CreateToken(ctx, viewsOf(app), n)
			return errs.CodeOf(err)
		}
		is.Equal(create(token, "a", sessions.NewToken{}), errs.Forbidden)
		is.Equal(create(t.Context(), "a", sessions.NewToken{}), errs.Unauthenticated)
		is.Equal(create(f.as(t), "none", sessions.NewToken{}), errs.NotFound)
		is.Equal(create(f.as(t), "a", sessions.NewToken{}, "other"), errs.Invalid)
		is.Equal(create(f.as(t), "a", sessions.NewToken{ExpiresAt: ptr(monday)}), errs.Invalid)
		is.Equal(create(f.as(t), "a", sessions.NewToken{Restrict: ptr("cidr")}), errs.Invalid)
		_, err := f.Token(f.as(t), viewsOf("a"), "\x00")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), viewsOf("a"), "\x00")), errs.NotFound)
		f.apps.closed = true
		is.Equal(create(f.as(t), "a", sessions.NewToken{}), errs.Forbidden)
		_, err = f.Tokens(f.as(t), viewsOf("a"), paging.Query{Limit: 9})
		is.Equal(errs.CodeOf(err), errs.Forbidden)
		_, err = f.Token(f.as(t), viewsOf("a"), made.ID)
		is.Equal(errs.CodeOf(err), errs.Forbidden)
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), viewsOf("a"), made.ID)), errs.Forbidden)
	})
}

// TestVisitorGoesWithApp: tokens of an app go with it, and with nothing else.
func TestVisitorGoesWithApp(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		made, credential := f.invited(t, sessions.NewToken{Restrict: ptr("cidr"), CIDR: ptr("127.0.0.0/8")})
		_, key := f.token(t, sessions.NewToken{})
		admitted := func(want bool) {
			t.Helper()
			_, err := f.Unchecked().Visitor(ctx, credential, loopback)
			is.Equal(err == nil, want)
		}
		admitted(true)
		// of others
		is.NoErr(f.Unchecked().Hooks().Deleted(
			ctx, "acme", entity.Key{Kind: "app", ID: "b"}, entity.Key{Kind: "library", ID: "a"},
		))
		is.NoErr(f.Unchecked().Hooks().Deleted(ctx, "evil", entity.Key{Kind: "app", ID: "a"}))
		is.NoErr(f.Unchecked().Hooks().Deleted(ctx, "acme", entity.Key{Kind: "app", ID: "none"}))
		admitted(true)
		is.NoErr(f.Unchecked().Hooks().Deleted(ctx, "acme", entity.Key{Kind: "app", ID: made.Entity.ID}))
		admitted(false)
		_, err := f.Authenticate(ctx, key, loopback)
		is.NoErr(err) // the personal ones stay
	})
}
