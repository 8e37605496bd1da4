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
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/sessions"
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

// TestObserverOfJobsAndHandlers: each try of a job is told, and each run of a handler.
func TestObserverOfJobsAndHandlers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, seen := is.New(t), open(t), &recorder{}
		done := make(chan struct{})
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), Observer: seen,
			Scripts: javascript.New(javascript.Options{}),
			Workers: []tenantcontent.Worker{{
				Kind: "mine", Backoff: func(int) time.Duration { return time.Millisecond },
				Do: func(_ context.Context, j queue.Job) error {
					if j.Tries == 1 {
						return errs.New(errs.Unavailable, "canary7f3a")
					}
					close(done)
					return nil
				},
			}},
		})
		is.NoErr(err)
		defer func() { is.NoErr(app.Close()) }()
		_, err = app.AddTenant(
			t.Context(), tenants.Tenant{ID: "ours", Settings: tenants.Settings{Licenses: []string{"apps"}}}, password,
		)
		is.NoErr(err)
		_, err = app.Tenants.Unchecked().Rekey(t.Context()) // the tenants of dbtest have no check of the key
		is.NoErr(err)

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		is.NoErr(app.Queue().Put(t.Context(), queue.Job{Tenant: "ours", Kind: "mine"}))
		select {
		case <-done:
		case err := <-ended:
			t.Fatalf("Run ended before the job was done: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("the job was not done")
		}
		stop()
		select {
		case err := <-ended:
			is.NoErr(err)
		case <-time.After(time.Minute):
			t.Fatal("Run has not ended")
		}
		is.Equal(seen.take(entity.JobWork), []string{"ours mine unavailable 0", "ours mine ok 0"})

		admin := actor.With(t.Context(), actor.Actor{Tenant: "ours", User: "admin", Superuser: true})
		shop, err := app.Apps.Create(admin, apps.App{Name: "Shop", Type: "app"})
		is.NoErr(err)
		for name, code := range map[string]string{
			"webhooks/ping.js":     `export function GET() { return {body: "pong"} }`,
			"webhooks/[action].js": `export function GET() { throw new Error("canary7f3a") }`,
		} {
			_, err := app.Apps.PutFile(admin, shop.ID, name, "text/javascript", strings.NewReader(code))
			is.NoErr(err)
		}
		_, err = app.Apps.Deploy(admin, shop.ID, apps.PublishOptions{})
		is.NoErr(err)
		token, err := app.Sessions.CreateWebhookToken(admin, shop.ID, sessions.NewToken{})
		is.NoErr(err)
		key, err := app.Webhooks.Keys(admin, shop.ID)
		is.NoErr(err)
		text, err := key(token.ID, token.CreatedAt)
		is.NoErr(err)
		for _, c := range []struct {
			path   string
			status int
			want   string
		}{
			{"ping", http.StatusOK, "ours webhooks /ping ok 0"},
			{"canary7f3a", http.StatusInternalServerError, "ours webhooks /:action thrown 0"},
		} {
			answer := httptest.NewRecorder()
			app.ServeHTTP(
				answer, httptest.NewRequest(http.MethodGet, "/api/apps/"+shop.ID+"/_hook/"+c.path+"?token="+text, nil),
			)
			is.Equal(answer.Code, c.status)
			is.Equal(seen.take(entity.HandlerWork), []string{c.want})
		}
	})
}

// TestObserverOfTenantArchives: whole tenants that are exported and imported are told.
func TestObserverOfTenantArchives(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, seen := is.New(t), &recorder{}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: open(t), SecretKey: tenantcontent.NewSecretKey(), Observer: seen,
		})
		is.NoErr(err)
		_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "ours"}, password)
		is.NoErr(err)
		var archive bytes.Buffer
		o := tenantcontent.TenantTransfer{Passphrase: "a long passphrase"}
		_, err = app.ExportTenant(t.Context(), "ours", &archive, o)
		is.NoErr(err)
		_, err = app.ExportTenant(t.Context(), "ours", &archive, tenantcontent.TenantTransfer{})
		is.True(err != nil) // no passphrase
		is.Equal(seen.take(entity.ArchiveWork), []string{"ours tenant export ok 0", "ours tenant export invalid 0"})

		_, err = app.ImportTenant(t.Context(), bytes.NewReader(archive.Bytes()), o)
		is.True(err != nil) // the tenant is there
		is.NoErr(app.Tenants.Unchecked().Delete(t.Context(), "ours", tenants.DeleteOptions{}))
		_, err = app.ImportTenant(t.Context(), bytes.NewReader(archive.Bytes()), o)
		is.NoErr(err)
		_, err = app.ImportTenant(t.Context(), strings.NewReader("no export"), o)
		is.True(err != nil)
		is.Equal(seen.take(entity.ArchiveWork), []string{
			"ours tenant import conflict 0", "ours tenant import ok 0", " tenant import invalid 0",
		})
	})
}
