package domains_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// TestSecrets: a secret is kept sealed, read as the mask, kept by a write that masks it or leaves it out, and gone with an
// empty one.
func TestSecrets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		d := w.add(t, "Books", "paper", `{"url": "ldap://x", "password": "hush-hush", "pin": "", "n": 1.50}`)
		is.Equal(string(d.Config), `{"n":1.50,"password":"********","pin":"********","url":"ldap://x"}`)
		is.Equal(d.Sealed, "")
		w.paper.all = []domains.Entry{person(1)}
		in := func(password string) bool {
			_, err := w.Authenticate(t.Context(), "acme", "books", "user0001", password)
			return err == nil
		}
		is.True(in("hush-hush"))

		put := func(config string) domains.Domain {
			t.Helper()
			d, err := w.Update(root(t), "books", func(d *domains.Domain) error { d.Config = json.RawMessage(config); return nil })
			is.NoErr(err)
			return d
		}
		put(`{"url": "ldap://y", "password": "********"}`)
		is.True(in("hush-hush"))
		is.Equal(string(put(`{"url": "ldap://z"}`).Config), `{"password":"********","pin":"********","url":"ldap://z"}`)
		is.True(in("hush-hush"))
		put(`{"url": "ldap://z", "password": "other"}`)
		is.True(in("other") && !in("hush-hush"))
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error { return nil }) // what is read can be written
		is.NoErr(err)
		is.True(in("other"))

		var stored []string
		ctx, c := bunx.For(t.Context(), w.db, "acme")
		is.NoErr(c.NewRaw(`SELECT coalesce(config, '') || coalesce(secrets, '') || search FROM tc_domains WHERE tenant_id = 'acme'`).Scan(ctx, &stored))
		all := strings.Join(stored, " ")
		is.True(!strings.Contains(all, "other") && !strings.Contains(all, "hush") && strings.Contains(all, "v1."))
		for _, ctx := range []struct{ super bool }{{true}, {false}} {
			page, err := w.All(as(t, "acme", "jo", ctx.super))
			is.NoErr(err)
			for _, d := range page {
				is.True(!strings.Contains(string(d.Config), "other") && d.Sealed == "")
			}
		}
		is.Equal(string(put(`{"url": "ldap://z", "password": null}`).Config), `{"url":"ldap://z"}`)
		is.Equal(put(`null`).Config, nil)
	})
}

// TestOthersSeeNoQueries: what may be a key in an address is for superusers.
func TestOthersSeeNoQueries(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "https://x.example/meta?apikey=hush"}`)
	for super, want := range map[bool]string{true: `{"url":"https://x.example/meta?apikey=hush"}`, false: `{"url":"https://x.example/meta"}`} {
		all, err := w.All(as(t, "acme", "jo", super))
		is.NoErr(err)
		is.Equal(string(all[0].Config), want)
	}
}

// TestBadDomains: each is refused with a message that begins with the field.
func TestBadDomains(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	long, name := strings.Repeat("x", 256), "Other"
	for field, d := range map[string]domains.Domain{
		"name is":            {Type: "paper"},
		"name must":          {Name: &long, Type: "paper"},
		"type must be":       {Name: &name, Type: "Paper"},
		"type must not":      {Name: &name, Type: "local"},
		"config must":        {Name: &name, Type: "paper", Config: json.RawMessage(`[]`)},
		"config.url is":      {Name: &name, Type: "paper", Config: json.RawMessage(`{}`)},
		"config.url must":    {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": 1}`)},
		"config.pasword is":  {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "x", "pasword": "open"}`)},
		"config.map.pin is":  {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "x", "map": {"uid": "a", "pin": "open"}}`)},
		"config.PASSWORD mu": {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "x", "PASSWORD": "open"}`)},
		"config must be":     {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "\u0000"}`)},
		"config must have":   {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "` + strings.Repeat("x", 600<<10) + `"}`)},
	} {
		_, err := w.Create(root(t), d)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		if !strings.HasPrefix(errs.MessageOf(err), field) {
			t.Errorf("want %q, got %q", field, errs.MessageOf(err))
		}
	}
	books := "  bóoks! "
	_, err := w.Create(root(t), domains.Domain{Name: &books, Type: "paper"})
	is.Equal(errs.CodeOf(err), errs.Conflict) // its id is books, too
	_, err = w.Update(root(t), "local", func(d *domains.Domain) error { d.Type = "paper"; return nil })
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = w.Update(root(t), "books", func(d *domains.Domain) error { d.Type = "local"; return nil })
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = w.Update(root(t), "local", func(d *domains.Domain) error { d.Config = json.RawMessage(`{"a":1}`); return nil })
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(errs.CodeOf(w.Delete(root(t), "local")), errs.Invalid)
	is.Equal(errs.CodeOf(w.Delete(root(t), "nowhere")), errs.NotFound)
	_, err = w.Get(as(t, "acme", "jo", false), "books")
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = w.Get(as(t, "evil", "root", true), "books")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}
