package domains_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestSecrets: a secret is kept sealed, read as the mask, kept by a write that masks it or leaves
// it out, and gone with an empty one.
func TestSecrets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		d := w.add(t, "Books", "paper", `{"url": "ldap://x", "password": "hush-hush", "pin": "", "n": 1.50}`)
		is.Equal(string(d.Config), `{"n":1.50,"password":"********","url":"ldap://x"}`)
		is.Equal(d.Sealed, "")
		w.paper.all = []domains.Entry{person(1)}
		in := func(password string) bool {
			_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: "acme", Domain: "books", Username: "user0001", Password: password,
			})
			return err == nil
		}
		is.True(in("hush-hush"))

		put := func(config string) domains.Domain {
			t.Helper()
			d, err := w.Update(root(t), "books", func(d *domains.Domain) error {
				d.Config = json.RawMessage(config)
				return nil
			})
			is.NoErr(err)
			return d
		}
		put(`{"url": "ldap://x", "password": "********", "n": 1.5}`)
		is.True(in("hush-hush"))
		is.Equal(
			string(put(`{"url": "ldap://x", "n": 1.50}`).Config),
			`{"n":1.50,"password":"********","url":"ldap://x"}`,
		)
		is.True(in("hush-hush"))
		put(`{"url": "ldap://z", "password": "other"}`)
		is.True(in("other") && !in("hush-hush"))
		// what is read can be written
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error { return nil })
		is.NoErr(err)
		is.True(in("other"))

		var stored []string
		ctx, c := bunx.For(t.Context(), w.db, "acme")
		is.NoErr(
			c.NewRaw(`SELECT coalesce(config, '') || coalesce(secrets, '') || search FROM tc_domains `+
				`WHERE tenant_id = 'acme'`).Scan(ctx, &stored),
		)
		all := strings.Join(stored, " ")
		is.True(!strings.Contains(all, "other") && !strings.Contains(all, "hush") && strings.Contains(all, "v1."))
		for _, ctx := range []struct{ super bool }{{true}, {false}} {
			page, err := paging.Collect(w.All(as(t, "acme", "jo", ctx.super)))
			is.NoErr(err)
			for _, d := range page {
				is.True(!strings.Contains(string(d.Config), "other") && d.Sealed == "")
			}
		}
		is.Equal(string(put(`{"url": "ldap://z", "password": null}`).Config), `{"url":"ldap://z"}`)
		is.Equal(put(`null`).Config, nil)
	})
}

// TestSecretsStayWhereTheyWere: a stored secret goes to no address that came without it, of a
// driver that does not say where its secrets go, and the message says what to send.
func TestSecretsStayWhereTheyWere(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "ldap://x", "password": "hush-hush", "n": 1}`)
	w.paper.all = []domains.Entry{person(1)}
	for config, name := range map[string]string{
		`{"url": "ldap://evil", "n": 1, "password": "********"}`: "url",
		`{"url": "ldap://evil", "n": 1}`:                         "url", `{"url": "ldap://x", "n": "ldap://evil"}`: "n",
		`{"url": "ldap://x", "n": 2}`: "n",
		`{"url": "ldap://x"}`:         "n", `{"url": "ldap://x", "n": 1, "map": {"uid": "evil"}}`: "map",
		`{"url": "LDAP://x", "n": 1}`: "url",
	} {
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error {
			d.Config = json.RawMessage(config)
			return nil
		})
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(
			errs.MessageOf(err),
			"config.password must be sent again, or null to drop it: config."+name+" may change where it is sent",
		)
	}
	_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "books", Username: "user0001", Password: "hush-hush",
	})
	is.NoErr(err) // nothing was written
	_, err = w.Update(root(t), "books", func(d *domains.Domain) error {
		d.Config, d.Description = json.RawMessage(`{ "n": 1.0, "url": "ldap://x" }`), new("the same configuration")
		return nil
	})
	is.NoErr(err)
	_, err = w.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "books", Username: "user0001", Password: "hush-hush",
	})
	is.NoErr(err)
	for _, config := range []string{
		`{"url": "ldap://new", "password": "sent again"}`, `{"url": "ldap://newer", "password": null}`,
	} {
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error {
			d.Config = json.RawMessage(config)
			return nil
		})
		is.NoErr(err)
	}
}

func TestSameServer(t *testing.T) {
	ports := map[string]string{"https": "443", "ldap": "389"}
	for _, same := range [][]string{
		{
			"https://login.example.com", "HTTPS://Login.Example.COM:443/", "https://login.example.com.",
			" https://login.example.com:443 ",
		},
		{"https://login.example.com/a", "https://login.example.com/a/"},
		{"ldap://[2001:db8::1]:389", "ldap://[2001:DB8:0::1]"}, {"ldap://192.0.2.1", "ldap://[::ffff:192.0.2.1]/"},
	} {
		for _, address := range same {
			if got, want := domains.SameServer(address, ports), domains.SameServer(same[0], ports); got != want {
				t.Errorf("%s is %s, want %s", address, got, want)
			}
		}
	}
	seen := map[string]bool{}
	for _, address := range []string{
		"https://a", "http://a", "https://a:444", "https://b", "https://a/x", "https://a/X", "https://a/x%2Fy",
		"https://a/x/y",
	} {
		form := domains.SameServer(address, ports)
		if seen[form] {
			t.Errorf("%s is the same as another one", address)
		}
		seen[form] = true
	}
}

// TestUnready: a domain that cannot work yet says why, and so does the refusal of a login there,
// for the log alone.
func TestUnready(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	d := w.add(t, "Books", "paper", `null`)
	is.Equal(d.Unready, "The domain books has no configuration.")
	_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "books", Username: "jo", Password: "x",
	})
	is.Equal(errs.MessageOf(err), "Unable to log in")
	is.True(strings.Contains(err.Error(), "The domain books has no configuration."))
	d, err = w.Update(root(t), "books", func(d *domains.Domain) error {
		d.Config = json.RawMessage(`{"url": "ldap://x"}`)
		return nil
	})
	is.NoErr(err)
	is.Equal(d.Unready, "")
	ctx, c := bunx.For(t.Context(), w.db, "acme")
	_, err = c.Exec(
		ctx,
		`UPDATE tc_domains SET config = '{"url": 1}', secrets = NULL WHERE tenant_id = 'acme' AND id = 'books'`,
	)
	is.NoErr(err)
	d, err = w.Get(root(t), "books")
	is.NoErr(err)
	is.True(strings.HasPrefix(d.Unready, "config.url "))
	_, err = w.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "books", Username: "jo", Password: "x",
	})
	is.True(strings.Contains(err.Error(), "config.url "))
	d, err = w.Get(root(t), "local")
	is.NoErr(err)
	is.Equal(d.Unready, "")
}

// TestPaused: a directory that has refused its account is not asked again until the configuration
// changes or its secret is sent again, and both the domain and its test say so.
func TestPaused(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.paper.tested = true
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	move := principals.Move{Username: "user0001", Domain: "books", SourceID: "id-0001"}
	asks := func(want string) {
		t.Helper()
		is := is.New(t)
		err := w.Lookup().CheckUser(t.Context(), "acme", move)
		is.Equal(errs.MessageOf(err), want)
		d, err := w.Get(root(t), "books")
		is.NoErr(err)
		is.Equal(d.Unready, want)
		for _, config := range []json.RawMessage{
			nil, []byte(`{"url": "x", "password": "********"}`), []byte(`{"url": "x", "password": "secret"}`),
		} {
			steps, err := w.Test(root(t), domains.Trial{ID: "books", Config: config, Username: "user0001"},
				func(string, string) domains.Endpoints { return domains.Endpoints{} })
			is.NoErr(err)
			is.Equal(steps[0].Message, want)
		}
	}
	save := func(config string) {
		t.Helper()
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error {
			if d.Description = &config; config != "" {
				d.Config = json.RawMessage(config)
			}
			return nil
		})
		is.New(t).NoErr(err)
	}
	const why = "The directory refuses the account."
	asks("")
	w.paper.stale = true
	is.Equal(errs.MessageOf(w.Lookup().CheckUser(t.Context(), "acme", move)), why)
	w.paper.stale = false // the realm does not know
	asks(why)
	is.Equal(w.paper.paused, 4)
	for _, kept := range []string{`{"url": "x", "password": "********"}`, `{"url": "x"}`} {
		save(kept)
		asks(why)
	}
	save(`{"url": "x", "password": "secret"}`)
	asks("")
}

// TestNothingBehindTheMask: a mask keeps what is stored, and stands for nothing else.
func TestNothingBehindTheMask(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	put := func(config string) error {
		t.Helper()
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error {
			d.Config = json.RawMessage(config)
			return nil
		})
		return err
	}
	none := func(err error) {
		t.Helper()
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.Equal(
			errs.MessageOf(err),
			"config.pin is masked, but there is none to keep: send the secret itself, or leave it out",
		)
	}
	name := "Books"
	_, err := w.Create(root(t), domains.Domain{
		Name:   &name,
		Type:   "paper",
		Config: json.RawMessage(`{"url": "x", "pin": "********"}`),
	})
	none(err)
	w.add(t, name, "paper", `{"url": "x", "password": "hush-hush"}`)
	none(put(`{"url": "x", "password": "********", "pin": "********"}`))
	is.NoErr(put(`{"url": "x", "password": "********", "pin": "1"}`))
	is.NoErr(put(`{"url": "x", "password": null, "pin": "********"}`))
	is.NoErr(put(`{"url": "x", "pin": ""}`))
	none(put(`{"url": "x", "pin": "********"}`))
}

// TestTooMuchConfigurationSize: lists show all configurations of a tenant, so all together are
// bounded.
func TestTooMuchConfigurationSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		of := func(kib int) string { return `{"url": "` + strings.Repeat("x", kib<<10) + `"}` }
		for i := range 16 {
			w.add(t, fmt.Sprint("d", i), "paper", of(511)) // 16 KiB are left
		}
		put := func(id, config string) error {
			t.Helper()
			_, err := w.Update(root(t), id, func(d *domains.Domain) error {
				d.Config = json.RawMessage(config)
				return nil
			})
			return err
		}
		tooLarge := func(err error) {
			t.Helper()
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(
				errs.MessageOf(err),
				"config is too large: those of all domains of a tenant together may have 8388608 bytes",
			))
		}
		create := func(name, config string) error {
			t.Helper()
			_, err := w.Create(root(t), domains.Domain{Name: &name, Type: "paper", Config: json.RawMessage(config)})
			return err
		}
		w.add(t, "e0", "paper", of(7))
		w.add(t, "e1", "paper", of(7))
		tooLarge(create("more", of(7)))
		is.NoErr(create("empty", ""))
		tooLarge(put("empty", of(7)))
		is.NoErr(put("d0", of(500)))
		is.NoErr(put("empty", of(7)))
		tooLarge(put("d0", of(511)))
		tooLarge(put("empty", `{"url": "x", "password": "`+strings.Repeat("x", 20<<10)+`"}`)) // what is sealed counts
		is.NoErr(w.store.Insert(t.Context(), "acme", domains.Domain{
			ID:        "old",
			Type:      "paper",
			Config:    json.RawMessage(of(511)),
			CreatedAt: w.clock,
			UpdatedAt: w.clock,
		}))
		tooLarge(put("e0", of(8)))
		is.NoErr(put("e0", of(7)))                  // what does not grow may stay, also in a tenant that has too much
		w.addTo(t, "evil", "own", "paper", of(511)) // another tenant has its own
	})
}

// TestOneChangeOfConfigurations: nobody adds to a tenant's configurations while somebody else does,
// so that both together keep to the bound.
func TestOneChangeOfConfigurations(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		w.add(t, "Books", "paper", `{"url": "x"}`)
		name := "Other"
		other := domains.Domain{Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "x"}`)}
		for _, change := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := w.Create(ctx, other); return err },
			func(ctx context.Context) error {
				_, err := w.Update(ctx, "books", func(d *domains.Domain) error { d.Config = other.Config; return nil })
				return err
			},
		} {
			is.NoErr(w.store.InTx(t.Context(), func(ctx context.Context) error {
				is.NoErr(w.store.LockTenant(ctx, "acme"))
				waiting, cancel := context.WithTimeout(root(t), 100*time.Millisecond)
				defer cancel()
				is.True(change(waiting) != nil)
				return nil
			}))
			is.NoErr(change(root(t)))
		}
	})
}

// TestBlankName: a name of blanks alone is none, also where there was a better one.
func TestBlankName(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	for _, name := range []string{"", "  ", "\u00a0"} {
		_, err := w.Update(root(t), "books", func(d *domains.Domain) error { d.Name = &name; return nil })
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.HasPrefix(errs.MessageOf(err), "name must"))
	}
}

// TestOthersSeeNoQueries: what may be a key in an address is for superusers.
func TestOthersSeeNoQueries(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	shown := func(super bool) (url string) {
		t.Helper()
		all, err := paging.Collect(w.All(as(t, "acme", "jo", super)))
		is.NoErr(err)
		var config struct{ URL string }
		is.NoErr(json.Unmarshal(all[0].Config, &config))
		return config.URL
	}
	w.add(t, "Books", "paper", `{"url": "x"}`)
	for stored, want := range map[string]string{
		"https://x.example/meta?apikey=hush":  "https://x.example/meta",
		" HTTPS+unix://x.example?apikey=hush": " HTTPS+unix://x.example",
		`<?xml version="1.0"?><md:X Location="https://x.example"/>`: `<?xml version="1.0"?><md:X ` +
			`Location="https://x.example"/>`,
		"who? see https://x.example": "who? see https://x.example",
	} {
		_, err := w.Update(root(t), "books", func(d *domains.Domain) (err error) {
			d.Config, err = json.Marshal(map[string]string{"url": stored})
			return err
		})
		is.NoErr(err)
		is.Equal(shown(true), stored)
		is.Equal(shown(false), want)
	}
}

// TestBadDomains: each is refused with a message that begins with the field.
func TestBadDomains(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x"}`)
	long, name := strings.Repeat("x", 256), "Other"
	for field, d := range map[string]domains.Domain{
		"name is":           {Type: "paper"},
		"name must":         {Name: &long, Type: "paper"},
		"type must be":      {Name: &name, Type: "Paper"},
		"type must not":     {Name: &name, Type: "local"},
		"config must":       {Name: &name, Type: "paper", Config: json.RawMessage(`[]`)},
		"config.url is":     {Name: &name, Type: "paper", Config: json.RawMessage(`{}`)},
		"config.url must":   {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": 1}`)},
		"config.pasword is": {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "x", "pasword": "open"}`)},
		"config.map.pin is": {
			Name:   &name,
			Type:   "paper",
			Config: json.RawMessage(`{"url": "x", "map": {"uid": "a", "pin": "open"}}`),
		},
		"config.PASSWORD mu": {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "x", "PASSWORD": "open"}`)},
		"config must be":     {Name: &name, Type: "paper", Config: json.RawMessage(`{"url": "\u0000"}`)},
		"config must have": {
			Name:   &name,
			Type:   "paper",
			Config: json.RawMessage(`{"url": "` + strings.Repeat("x", 600<<10) + `"}`),
		},
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
	_, err = w.Update(root(t), "local", func(d *domains.Domain) error {
		d.Config = json.RawMessage(`{"a":1}`)
		return nil
	})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(errs.MessageOf(err), "config.a is not known: the driver local has hidden")
	is.Equal(errs.CodeOf(w.Delete(root(t), "local")), errs.Invalid)
	is.Equal(errs.CodeOf(w.Delete(root(t), "nowhere")), errs.NotFound)
	_, err = w.Get(as(t, "acme", "jo", false), "books")
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = w.Get(as(t, "evil", "root", true), "books")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}
