package sessions_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/sessions"
)

func newKeys(t *testing.T) *keyring.Ring {
	t.Helper()
	keys, err := keyring.Parse(keyring.Generate())
	is.New(t).NoErr(err)
	return keys
}

// TestProviderSessions: a session that began at a provider knows again what a logout there needs,
// sealed, and ends when the provider says so.
func TestProviderSessions(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx, u := is.New(t), t.Context(), f.Unchecked()
		user := f.login(t).User
		at := sessions.ProviderSession{
			Domain:  "work",
			Subject: "jo@example.com",
			ID:      "sid-1",
			Memory:  []byte("token-of-jo"),
		}
		l, err := u.Start(ctx, "acme", user, at)
		is.NoErr(err)
		a, err := f.Authenticate(ctx, l.Token, loopback)
		is.NoErr(err)
		got, err := f.ProviderSession(actor.With(ctx, a))
		is.NoErr(err)
		is.Equal(got, sessions.ProviderSession{Domain: "work", Memory: at.Memory})
		for _, secret := range []string{"token-of-jo", "jo@example.com", "sid-1"} {
			is.True(!strings.Contains(dump(t, f.db, "acme"), secret))
		}
		bare, err := u.Start(ctx, "acme", user, sessions.ProviderSession{Domain: "work", Subject: "kim"})
		is.NoErr(err)
		b, err := f.Authenticate(ctx, bare.Token, loopback)
		is.NoErr(err)
		got, err = f.ProviderSession(actor.With(ctx, b))
		is.NoErr(err)
		is.Equal(got, sessions.ProviderSession{Domain: "work"})

		plain, err := f.Authenticate(ctx, f.login(t).Token, loopback)
		is.NoErr(err)
		for _, who := range []actor.Actor{
			plain, {Tenant: "acme", User: "jo", Token: "x"}, {Tenant: "evil", User: "jo", Session: a.Session},
		} {
			_, err = f.ProviderSession(actor.With(ctx, who))
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		_, err = f.ProviderSession(ctx)
		is.True(err != nil)

		for _, none := range []struct{ tenant, domain, subject, id string }{
			{"evil", "work", at.Subject, ""}, {"acme", "other", at.Subject, ""},
			{"acme", "work", "kim", at.ID}, {"acme", "work", "", "sid-2"},
		} {
			var ids []string
			if none.id != "" {
				ids = []string{none.id}
			}
			n, err := u.EndProviderSessions(ctx, none.tenant, none.domain, none.subject, ids)
			is.NoErr(err)
			is.Equal(n, 0)
		}
		credential := sessions.Credential(a)
		_, err = u.Resume(ctx, "acme", credential, loopback)
		is.NoErr(err)
		n, err := u.EndProviderSessions(ctx, "acme", "work", at.Subject, []string{at.ID})
		is.NoErr(err)
		is.Equal(n, 1)
		_, err = f.Authenticate(ctx, l.Token, loopback) // at once: it was looked up a moment ago
		refused(t, err)
		_, err = u.Resume(ctx, "acme", credential, loopback) // what was derived from it
		refused(t, err)
		_, err = f.Authenticate(ctx, bare.Token, loopback)
		is.NoErr(err)
	})
}
