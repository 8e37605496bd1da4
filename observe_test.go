package tenantcontent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// recorder is an Observer that keeps what it is told of.
type recorder struct {
	mu  sync.Mutex
	all []entity.Observation
}

// Observe implements entity.Observer.
func (r *recorder) Observe(_ context.Context, o entity.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, o)
}

// take returns what it was told of some work as "tenant kind outcome status", and forgets all.
func (r *recorder) take(work entity.Work) (some []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.all {
		if o.Work == work {
			some = append(some, fmt.Sprintf("%s %s %s %d", o.Tenant, o.Kind, o.Outcome, o.Status))
		}
	}
	r.all = nil
	return some
}

func TestObserver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		const canary = "canary7f3a"
		is, db, seen := is.New(t), open(t), &recorder{}
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin", Superuser: true, AI: true})
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(),
			Observer: seen, DomainDrivers: []domains.Driver{ldap.LDAP{}},
			AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Authenticate:  func(r *http.Request) (actor.Actor, error) { return actor.From(ctx) },
		})
		is.NoErr(err)
		_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "ours"}, password)
		is.NoErr(err)

		is.True(len(seen.take(entity.StatementWork)) > 0)
		serve := func(method, path, body string) []string {
			t.Helper()
			app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body)))
			seen.mu.Lock()
			all := slices.Clone(seen.all)
			seen.mu.Unlock()
			for _, o := range all {
				is.True(!o.Start.IsZero() && o.Duration > 0 && o.Duration < time.Minute)
				is.True(!strings.Contains(fmt.Sprint(o), canary)) // neither the path nor an argument of a statement
				if o.Work == entity.StatementWork {
					is.True(o.Tenant == "ours" || o.Tenant == "")
				}
			}
			return seen.take(entity.RequestWork)
		}
		is.Equal(
			serve("PUT", "/api/colors/"+canary, `{"color": "#ff0000"}`),
			[]string{"ours PUT /api/colors/:key ok 200"},
		)
		is.Equal(
			serve("PUT", "/api/colors/"+canary, `{"color": "`+canary+`"}`),
			[]string{"ours PUT /api/colors/:key invalid 400"},
		)
		is.Equal(serve("GET", "/api/"+canary, ""), []string{"  not_found 404"})

		_, err = app.Colors.Get(ctx, canary)
		is.NoErr(err)
		is.Equal(seen.take(entity.StatementWork), []string{"ours SELECT ok 0"})
		tx, err := db.BeginTx(ctx, nil) // of the host, whose bun.DB has no Observer
		is.NoErr(err)
		within, err := tenantcontent.WithTx(ctx, tx)
		is.NoErr(err)
		_, err = app.Colors.Get(within, canary)
		is.NoErr(err)
		is.NoErr(tx.Rollback())
		is.Equal(seen.take(entity.StatementWork), []string{"ours SELECT ok 0"})

		b, err := app.Bundles.Create(ctx, bundles.Bundle{Name: canary})
		is.NoErr(err)
		_, err = app.Bundles.CreateEntry(ctx, b.ID, "global", "color", nil)
		is.NoErr(err)
		export, err := app.Bundles.Export(ctx, b.ID)
		is.NoErr(err)
		var archive bytes.Buffer
		is.NoErr(export.Write(ctx, &archive))
		is.Equal(seen.take(entity.ArchiveWork), []string{"ours export ok 0"})
		_, err = app.Bundles.Import(ctx, bytes.NewReader(archive.Bytes()), bundles.ImportOptions{})
		is.NoErr(err)
		_, err = app.Bundles.Restore(ctx, strings.NewReader("no archive"), bundles.ImportOptions{})
		is.True(err != nil)
		is.Equal(seen.take(entity.ArchiveWork), []string{"ours import ok 0", "ours restore invalid 0"})

		name := "dir"
		d, err := app.Domains.Create(ctx, domains.Domain{Name: &name, Type: "LDAP", Config: json.RawMessage(
			`{"url": "ldap://127.0.0.1:1", "baseDN": "dc=example,dc=org", "bindDN": "cn=` + canary +
				`,dc=example,dc=org", "bindPassword": "` + canary + `"}`)})
		is.NoErr(err)
		_, err = app.Domains.ScanDomain(ctx, d.ID, domains.ScanOptions{})
		is.True(err != nil) // nobody listens there
		scans := seen.take(entity.ScanWork)
		is.Equal(len(scans), 1)
		is.True(strings.HasPrefix(scans[0], "ours LDAP ") && !strings.Contains(scans[0], "ok"))

	})
}

// modelOf is a Provider that fails, makes images and lists models.
type modelOf struct{ ai.None }

// Chat implements ai.Provider.
func (modelOf) Chat(context.Context, ai.Request, func(ai.Part) error) (ai.Answer, error) {
	return ai.Answer{}, context.DeadlineExceeded
}

// lister is a Provider that lists models.
type lister struct{ modelOf }

// Models implements ai.Lister.
func (lister) Models() []string { return []string{"small"} }

// imager is a Provider that lists models and makes images.
type imager struct{ lister }

// Image implements ai.Imager.
func (imager) Image(context.Context, ai.ImageRequest) (ai.Image, error) { return ai.Image{}, nil }

// TestObserverOfModels keeps what a Provider can do beside chats.
func TestObserverOfModels(t *testing.T) {
	is, seen := is.New(t), &recorder{}
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin"})
	is.Equal(tenantcontent.Observed(nil, seen), nil)
	is.Equal(tenantcontent.Observed(ai.None{}, seen), ai.None{})
	for _, c := range []struct {
		p              ai.Provider
		images, models bool
	}{{modelOf{}, false, false}, {lister{}, false, true}, {imager{}, true, true}} {
		p := tenantcontent.Observed(c.p, seen)
		_, err := p.Chat(ctx, ai.Request{}, nil)
		is.Equal(err, context.DeadlineExceeded)
		is.Equal(seen.take(entity.ModelWork), []string{"ours chat internal 0"})
		images, ok := p.(ai.Imager)
		is.Equal(ok, c.images)
		if ok {
			_, err := images.Image(ctx, ai.ImageRequest{})
			is.NoErr(err)
			is.Equal(seen.take(entity.ModelWork), []string{"ours image ok 0"})
		}
		models, ok := p.(ai.Lister)
		is.Equal(ok, c.models)
		if ok {
			is.Equal(models.Models(), []string{"small"})
		}
	}
}

// TestNoObserverCostsNothing counts allocations.
func TestNoObserverCostsNothing(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	is.Equal(testing.AllocsPerRun(100, func() {
		start := time.Now()
		entity.Observe(ctx, nil, entity.Observation{
			Work:    entity.JobWork,
			Tenant:  "ours",
			Kind:    "k",
			Outcome: entity.Outcome(nil),
			Start:   start,
		})
	}), 0.0)
}
