package sessions_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// hooksOf names the tokens of the webhooks of an app.
func hooksOf(app string) sessions.TokensOf {
	return sessions.TokensOf{Type: sessions.Webhook, EntityID: app}
}

// TestWebhookToken: it is of one app, is counted, ends when it is deleted, and authenticates
// nobody.
func TestWebhookToken(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		made, credential, err := f.CreateToken(f.as(t), hooksOf("a"), sessions.NewToken{
			Notes:     ptr("stripe"),
			ExpiresAt: ptr(monday.Add(time.Hour)),
			Restrict:  ptr("cidr"),
			CIDR:      ptr("127.0.0.0/8"),
		})
		is.NoErr(err)
		is.Equal(credential, "") // package webhooks makes it
		is.Equal(made.Type, "webhook")
		is.Equal(made.Entity, entity.Key{Kind: "app", ID: "a"})
		is.Equal(made.SecretHash, "")
		view, _ := f.invited(t, sessions.NewToken{})
		use := func(tenant, id, app string, from netip.Addr) error {
			return f.Unchecked().UseToken(ctx, tenant, hooksOf(app), id, from)
		}
		is.NoErr(use("acme", made.ID, "a", loopback))
		is.NoErr(use("acme", made.ID, "a", loopback))
		refused(t, use("acme", made.ID, "b", loopback))
		refused(t, use("evil", made.ID, "a", loopback))
		refused(t, use("acme", view.ID, "a", loopback))
		refused(t, f.Unchecked().UseToken(ctx, "acme", viewsOf("a"), made.ID, loopback))
		refused(t, use("acme", "\x00", "a", loopback))
		refused(t, use("acme", made.ID, "a", netip.MustParseAddr("192.0.2.1")))
		for _, credential := range []string{"tct.acme." + made.ID + ".x", "tcv.acme." + made.ID + ".x"} {
			_, err := f.Authenticate(ctx, credential, loopback)
			refused(t, err)
			_, err = f.Unchecked().Visitor(ctx, credential, loopback)
			refused(t, err)
		}
		page, err := f.Tokens(f.as(t), hooksOf("a"), paging.Query{Limit: 9})
		is.NoErr(err)
		is.Equal(page.Total, 1) // without those that show the app
		is.Equal(page.Rows[0].Requests, int64(2))
		is.Equal(page.Rows[0].Blocked, int64(1))
		one, err := f.Token(f.as(t), hooksOf("a"), made.ID)
		is.NoErr(err)
		is.Equal(one, page.Rows[0])
		views, err := f.Tokens(f.as(t), viewsOf("a"), paging.Query{Limit: 9})
		is.NoErr(err)
		is.Equal(views.Total, 1)

		f.now = monday.Add(time.Hour)
		refused(t, use("acme", made.ID, "a", loopback))
		f.now = monday
		_, err = f.users.UpdateUser(f.as(t), "jo", func(*principals.User) error { return nil })
		is.NoErr(err)
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), hooksOf("b"), made.ID)), errs.NotFound)
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), viewsOf("a"), made.ID)), errs.NotFound)
		is.Equal(errs.CodeOf(f.DeleteToken(f.as(t), hooksOf("a"), view.ID)), errs.NotFound)
		is.NoErr(f.DeleteToken(f.as(t), hooksOf("a"), made.ID))
		refused(t, use("acme", made.ID, "a", loopback))

		token := actor.With(ctx, actor.Actor{Tenant: "acme", User: "jo", Superuser: true, Token: "x", ReadOnly: true})
		for want, ctx := range map[errs.Code]context.Context{errs.Forbidden: token, errs.Unauthenticated: ctx} {
			_, _, err := f.CreateToken(ctx, hooksOf("a"), sessions.NewToken{})
			is.Equal(errs.CodeOf(err), want)
		}
		_, _, err = f.CreateToken(f.as(t), hooksOf("none"), sessions.NewToken{})
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, _, err = f.CreateToken(f.as(t), hooksOf("a"), sessions.NewToken{CIDR: ptr("x")})
		is.Equal(errs.CodeOf(err), errs.Invalid)
	})
}

// TestActorOf: a user's rights of the moment, and nobody for one who is disabled or gone.
func TestActorOf(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		team, err := f.users.CreateTeam(f.as(t), principals.Team{Name: "Crew"})
		is.NoErr(err)
		_, err = f.users.CreateUser(f.as(t), principals.User{Username: "mia", Enabled: true}, "")
		is.NoErr(err)
		of := func(tenant, name string) (actor.Actor, error) {
			return f.Unchecked().ActorOf(t.Context(), tenant, name)
		}
		a, err := of("acme", "mia")
		is.NoErr(err)
		is.Equal(a, actor.Actor{Tenant: "acme", User: "mia"})
		_, err = f.users.PutMember(f.as(t), team.ID, "mia", actor.Publisher)
		is.NoErr(err)
		a, err = of("acme", "mia")
		is.NoErr(err)
		is.Equal(a.Teams, map[string]actor.Role{team.ID: actor.Publisher})
		_, err = of("evil", "mia")
		refused(t, err)
		_, err = of("acme", "nobody")
		refused(t, err)
		a, err = of("acme", "jo")
		is.NoErr(err)
		is.True(a.Superuser)
		_, err = f.users.UpdateUser(f.as(t), "mia", func(u *principals.User) error { u.Enabled = false; return nil })
		is.NoErr(err)
		_, err = of("acme", "mia")
		refused(t, err)
	})
}
