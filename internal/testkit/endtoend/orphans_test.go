package endtoend_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestNoOrphans: content that a user creates while being renamed or deleted belongs to the renamed
// user or the heir, or is not created. It never belongs to a missing user, whose name a new user
// could get.
func TestNoOrphans(t *testing.T) {
	config := map[string]any{"issuer": "https://login.example.com", "clientID": "x"}
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		w := serve(t, db, "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", nil)
		w.admin.must(t, "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
		topic := w.admin.create(t, "/api/reports", `{"name":"Topic"}`)
		for n, end := range []func(domain, name string) error{
			func(_, name string) error { return w.app.Principals.DeleteUser(root(t), name, "admin") },
			func(_, name string) error {
				return w.app.InTx(root(t), func(ctx context.Context) error {
					if _, err := w.app.Principals.Reassign(ctx, name, "admin"); err != nil {
						return err
					}
					time.Sleep(20 * time.Millisecond) // time to create more, if that did not wait
					ctx, c := bunx.For(ctx, db, "acme")
					left := 0
					err := c.One(
						ctx, "Entity",
						`SELECT count(*) FROM tc_entities WHERE tenant_id = $1 AND owner_id = $2`,
						[]any{"acme", name}, &left,
					)
					if err == nil && left > 0 {
						err = fmt.Errorf("%d pieces are left to %s", left, name)
					}
					return err
				})
			},
			func(domain, name string) error {
				_, err := w.app.Principals.Unchecked().Admit(
					t.Context(), "acme", principals.Source{
						Domain: domain, Driver: "OIDC",
					}, principals.Identity{ID: name, Username: name + "new"},
				)
				return err
			},
			func(domain, _ string) error { return w.app.Domains.Delete(root(t), domain) },
			func(domain, _ string) error { // in a scan
				_, err := w.sync().Sync(t.Context(), "acme", domain, dirsync.Snapshot{People: []principals.Identity{
					{ID: "jo3", Username: "mia3"}, {ID: "mia3", Username: "jo3x"},
				}}, dirsync.SyncOptions{Source: "OIDC", Force: true})
				return err
			},
		} {
			name, domain := fmt.Sprint("jo", n), w.admin.domain(t, fmt.Sprint("Work ", n), "OIDC", config)
			_, err := w.app.Principals.Unchecked().Admit(
				t.Context(), "acme", principals.Source{
					Domain: domain, Driver: "OIDC",
				}, principals.Identity{ID: name, Username: name},
			)
			is.NoErr(err)
			stop := w.busy(t, name, topic)
			err = end(domain, name)
			time.Sleep(20 * time.Millisecond)
			stop()
			is.NoErr(err)
			is.Equal(orphans(t, db), 0)
			_, err = w.app.Domains.Get(root(t), domain)
			if errs.CodeOf(err) == errs.NotFound { // a login that was accepted is too late
				_, err = w.app.Principals.Unchecked().Admit(
					t.Context(), "acme", principals.Source{
						Domain: domain, Driver: "OIDC",
					}, principals.Identity{ID: name, Username: name},
				)
				is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			}
		}
	})
}

// root returns the context of a superuser of acme.
func root(t *testing.T) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
}

// busy creates content as a user, several entities concurrently, until stop is called. It returns
// when there is some of each kind. The calls may fail when the user no longer exists.
func (w *world) busy(t *testing.T, name, topic string) (stop func()) {
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: name, Superuser: true, AI: true})
	ended := make(chan struct{})
	var all, made sync.WaitGroup
	for _, add := range []func() error{
		func() error {
			_, err := w.app.Content.Create(ctx, content.Entity{Kind: "report", Name: "x"})
			return err
		},
		func() error {
			_, err := w.app.Content.Create(ctx, content.Entity{Kind: "query", Name: "x"})
			return err
		},
		func() error {
			_, err := w.app.Comments.Create(ctx, entity.Key{Kind: "report", ID: topic}, "x")
			return err
		},
		func() error {
			_, err := w.app.Uploads.Create(ctx, files.Draft{Filename: "a"}, strings.NewReader("a"))
			return err
		},
		func() error {
			_, err := w.app.Downloads.Create(ctx, files.Draft{Filename: "a"}, func(to io.Writer) error {
				_, err := to.Write([]byte("a"))
				return err
			})
			return err
		},
		func() error {
			_, err := w.app.AIInstructions.Create(ctx, aiinstr.Instruction{Slug: "x" + rand.Text(), Content: "x"})
			return err
		},
	} {
		made.Add(1)
		all.Go(func() {
			first := sync.OnceFunc(made.Done)
			defer first()
			for {
				select {
				case <-ended:
					return
				default:
				}
				if err := add(); err != nil && errs.CodeOf(err) != errs.Forbidden {
					t.Error(err)
					return
				}
				first()
			}
		})
	}
	made.Wait()
	return func() { close(ended); all.Wait() }
}

// orphans returns the number of rows without an existing owner.
func orphans(t *testing.T, db *bun.DB) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	is.New(t).NoErr(c.One(ctx, "Owner", `SELECT count(*) FROM (
		SELECT owner_id AS owner FROM tc_entities WHERE tenant_id = $1
		UNION ALL SELECT username FROM tc_uploads WHERE tenant_id = $1 AND username <> '' -- '' waits to be swept, and is the name of nobody ever
		UNION ALL SELECT username FROM tc_downloads WHERE tenant_id = $1 AND username <> ''
		UNION ALL SELECT owner_id FROM tc_ai_instructions WHERE tenant_id = $1
		UNION ALL SELECT user_id FROM tc_comments c WHERE tenant_id = $1 AND author_no =
			coalesce((SELECT n FROM tc_former_users a WHERE a.tenant_id = $1 AND a.username = c.user_id), 0)
		) AS owned WHERE owner NOT IN (SELECT id FROM tc_principals WHERE tenant_id = $1)
			AND owner NOT IN (SELECT id FROM tc_removals WHERE tenant_id = $1 AND kind = 'user') -- an account that nobody gets ever`,
		[]any{"acme"}, &n))
	return n
}
