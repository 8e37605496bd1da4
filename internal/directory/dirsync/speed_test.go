package dirsync_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// company returns people with full profiles, each in three of the groups.
func company(people, groups int) (snap snapshot) {
	for n := range people {
		snap.People = append(snap.People, identity{
			ID:       fmt.Sprintf("0d4f2c3a-5b6e-4f70-8a91-%012d", n),
			Username: fmt.Sprintf("user%06d", n), DisplayName: fmt.Sprintf("Given%d Family%d", n, n),
			GivenName: fmt.Sprint("Given", n), FamilyName: fmt.Sprint("Family", n),
			Email: fmt.Sprintf("user%06d@example.com", n), Timezone: "Europe/Berlin",
		})
	}
	for n := range groups {
		snap.Groups = append(snap.Groups, group{
			ID:   fmt.Sprintf("1d4f2c3a-5b6e-4f70-8a91-%012d", n),
			Name: fmt.Sprint("Group ", n),
		})
	}
	for n, who := range snap.People {
		for i := range 3 {
			g := &snap.Groups[(n*3+i)%groups]
			g.Members = append(g.Members, strings.Clone(who.ID))
		}
	}
	return snap
}

// BenchmarkSync compares scans of 20,000 people in 200 groups, with 60,000 memberships, with bare
// writes and reads of the same rows. It measures a first scan and an unchanged second one:
//
//	go test ./internal/directory/dirsync -run - -bench Sync -benchtime 5x
func BenchmarkSync(b *testing.B) {
	for engine, open := range map[string]dbtest.Opener{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			snap := company(20_000, 200)
			var first, second, bare time.Duration
			for b.Loop() {
				ours, theirs := open(b), open(b)
				s := syncOf(bunstore.New(ours), nil)
				first += lasting(b, func() error { return scanned(s, snap) })
				second += lasting(b, func() error { return scanned(s, snap) })
				bare += lasting(b, func() error { return insertBare(b.Context(), theirs, snap) })
			}
			n := float64(b.N) * float64(time.Millisecond)
			b.ReportMetric(float64(first)/n, "first-ms")
			b.ReportMetric(float64(bare)/n, "bare-ms")
			b.ReportMetric(float64(first)/float64(bare), "first/bare")
			b.ReportMetric(float64(second)/n, "second-ms")
		})
	}
}

// BenchmarkSyncMemory reports the most additional live memory of scans of 100,000 people in 1,000
// groups, including the snapshot.
func BenchmarkSyncMemory(b *testing.B) {
	for engine, open := range map[string]dbtest.Opener{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			for b.Loop() {
				s := syncOf(bunstore.New(open(b)), nil)
				base := heap()
				snap := company(100_000, 1_000)
				b.ReportMetric(mib(heap()-base), "snapshot-MiB")
				for _, scan := range []string{"first", "second"} {
					var most atomic.Uint64
					stop, stopped := make(chan struct{}), make(chan struct{})
					go func() {
						defer close(stopped)
						for {
							select {
							case <-stop:
								return
							case <-time.After(5 * time.Millisecond):
								var m runtime.MemStats
								runtime.ReadMemStats(&m)
								most.Store(max(most.Load(), m.HeapAlloc))
							}
						}
					}()
					lasting(b, func() error { return scanned(s, snap) })
					close(stop)
					<-stopped
					b.ReportMetric(mib(most.Load()-base), scan+"-peak-MiB")
				}
				runtime.KeepAlive(snap)
			}
		})
	}
}

// BenchmarkRemoveDomain removes a domain of 20,000 people in 200 groups.
func BenchmarkRemoveDomain(b *testing.B) {
	for engine, open := range map[string]dbtest.Opener{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			snap := company(20_000, 200)
			var took time.Duration
			for b.Loop() {
				store := bunstore.New(open(b))
				s := principals.New(principals.Options{Store: store, Content: entity.NewRegistry(), Cost: cheap})
				_, err := s.Unchecked().AddSuperuser(b.Context(), principals.Credentials{
					Tenant: "acme", Username: "root", Password: password,
				})
				if err == nil {
					err = scanned(syncOf(store, s), snap)
				}
				if err != nil {
					b.Fatal(err)
				}
				took += lasting(b, func() error {
					return s.Unchecked().RemoveDomain(context.Background(), "acme", "ldap", "root")
				})
			}
			b.ReportMetric(float64(took)/float64(b.N)/float64(time.Millisecond), "remove-ms")
		})
	}
}

// syncOf returns a dirsync.Service over a store; s is nil for a principals.Service without content.
func syncOf(store *bunstore.Store, s *principals.Service) *dirsync.Service {
	if s == nil {
		s = principals.New(principals.Options{Store: store})
	}
	return dirsync.New(dirsync.Options{Store: store, Principals: s.Unchecked()})
}

func scanned(s *dirsync.Service, snap snapshot) error {
	_, err := s.Sync(context.Background(), "acme", "ldap", snap, dirsync.SyncOptions{Source: "LDAP"})
	return err
}

func lasting(b *testing.B, do func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// insertBare writes the rows of a first scan with plain statements.
func insertBare(ctx context.Context, db *bun.DB, snap snapshot) error {
	return bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
		at := bunx.At(monday)
		var users, teams, members [][]any
		names := map[string]string{}
		for _, who := range snap.People {
			names[who.ID] = who.Username
			users = append(users, []any{
				"acme", who.Username, who.Username, fold.Text(who.DisplayName),
				fold.Search(who.Username, who.DisplayName, who.Email), "ldap", "LDAP", who.ID,
				who.DisplayName, who.FamilyName, who.GivenName, who.Email, who.Timezone, true, false, "{}",
				"{}", at, at, 0, false, false, false, false,
				false, false, false, false,
			})
		}
		for n, g := range snap.Groups {
			id := fmt.Sprintf("01932e00-0000-7000-8000-%012d", n)
			teams = append(teams, []any{
				"acme", id, g.Name, fmt.Sprint("slug-", n), g.Name, g.Name, "ldap", "LDAP", g.ID, at, at,
			})
			for _, member := range g.Members {
				members = append(members, []any{"acme", id, names[member], 1, at})
			}
		}
		for _, table := range []struct {
			into string
			rows [][]any
		}{
			{`tc_users (tenant_id, username, folded, label, search, domain, source, source_id, display_name, family_name, given_name, email, timezone,
				enabled, directory_disabled, data, user_fields, created_at, updated_at, login_attempts, superuser, may_ai, may_create_jobs,
				may_view_all_teams, may_view_all_users, may_script, mfa, ai_consent)`, users},
			{
				`tc_teams (tenant_id, id, name, slug, label, search, domain, source, source_id, created_at, ` +
					`updated_at)`,
				teams,
			},
			{`tc_memberships (tenant_id, team_id, username, role, created_at)`, members},
		} {
			for len(table.rows) > 0 {
				some := table.rows[:min(500, len(table.rows))]
				table.rows = table.rows[len(some):]
				var args []any
				for _, row := range some {
					args = append(args, row...)
				}
				if _, err := c.Exec(ctx, `INSERT INTO `+table.into+` VALUES `+
					bunx.Values(len(some), len(some[0])), args...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
