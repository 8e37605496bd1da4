package removal_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/jobs/removal"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	commentstore "github.com/tenantcontent/tenantcontent/internal/store/comments"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// killedDatabases is the environment variable with the databases of a process that deletes until it
// is killed, one on each line.
const killedDatabases = "REMOVAL_TEST_DATABASES"

const (
	kills  = 100 // of a process that uses both engines
	things = 6   // reports, users and teams, each
	rows   = 300 // of each: comments with an activity each; of the feed, notifications and uploads; members
)

// world has the services over a database, with a queue that does their jobs. A job removes 20 rows
// in a transaction. The lease is short, so that the jobs of a killed process continue soon.
type world struct {
	db       *bun.DB
	jobs     *queue.Service
	comments *commentstore.Store
	people   *principals.Service
	store    *principalstore.Store
	uploads  *files.Service
	registry *entity.Registry
}

func open(t *testing.T, url string) *world {
	t.Helper()
	db, err := engines.Open(url)
	is.New(t).NoErr(err)
	w := &world{
		db:       db,
		jobs:     queue.New(queue.Options{Store: queuestore.New(db), Node: queue.Node{Poll: 50 * time.Millisecond}}),
		comments: commentstore.New(db),
		store:    principalstore.New(db),
		uploads:  files.New(files.Options{Store: filestore.Uploads(db), Blobs: blobstore.New(db), Noun: "Upload"}),
		registry: entity.NewRegistry(),
	}
	removals := removal.New(removal.Options{DB: db, Jobs: w.jobs, Entities: w.registry, Step: 20})
	w.people = principals.New(principals.Options{
		Store:    w.store,
		Blobs:    blobstore.New(db),
		Content:  w.registry,
		Removals: removals,
	})
	said := comments.New(comments.Options{
		Store:    w.comments,
		Queue:    w.comments,
		Entities: w.registry,
		Removals: removals,
	})
	w.registry.AddHooks(w.people.Unchecked().Hooks(), said.Unchecked().Hooks(), w.uploads.Hooks())
	worker := removals.Worker()
	worker.Lease = 300 * time.Millisecond
	is.New(t).NoErr(w.jobs.Add(worker))
	return w
}

func report(n int) entity.Key { return entity.Key{Kind: "report", ID: fmt.Sprintf("r%02d", n)} }

func user(n int) string { return fmt.Sprintf("u%02d", n) }

func team(n int) string { return fmt.Sprintf("018f0000-0000-7000-8000-0000000000%02d", n) }

// delete deletes a report, a user or a team. It returns nil if it was already deleted.
func (w *world) delete(ctx context.Context, n int) error {
	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "root", Superuser: true})
	var err error
	switch n % 3 {
	case 0:
		err = w.comments.InTx(ctx, func(ctx context.Context) error {
			return w.registry.Deleted(ctx, "acme", report(n/3))
		})
	case 1:
		err = w.people.DeleteUser(ctx, user(n/3), "")
	default:
		err = w.people.DeleteTeam(ctx, team(n/3), "")
	}
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	return err
}

// there reports whether a report, a user or a team exists with all its rows. It fails the test if
// only some rows exist.
func (w *world) there(t *testing.T, n int) bool {
	t.Helper()
	is, ctx, q := is.New(t), t.Context(), paging.Query{Limit: 1}
	var seen, all []int
	switch n % 3 {
	case 0:
		page, err := w.comments.List(ctx, "acme", report(n/3), q)
		is.NoErr(err)
		activities, err := w.comments.Activities(ctx, "acme", report(n/3), q)
		is.NoErr(err)
		seen, all = []int{page.Total, len(page.Rows), activities.Total, len(activities.Rows)}, []int{1, 1, rows, 1}
	case 1:
		found := 1
		if _, err := w.store.User(ctx, "acme", user(n/3)); err != nil {
			is.Equal(errs.CodeOf(err), errs.NotFound)
			found = 0
		}
		feed, err := w.comments.Feed(ctx, "acme", user(n/3), q)
		is.NoErr(err)
		notifications, err := w.comments.Notifications(ctx, "acme", user(n/3), comments.NotificationFilter{}, q)
		is.NoErr(err)
		unread, err := w.comments.Unread(ctx, "acme", user(n/3))
		is.NoErr(err)
		uploads, err := w.uploads.List(ctx, "acme", []string{user(n / 3)}, q)
		is.NoErr(err)
		seen = []int{
			found, feed.Total, len(feed.Rows), notifications.Total, len(notifications.Rows), unread,
			uploads.Total, len(uploads.Rows),
		}
		all = []int{1, rows, 1, rows, 1, rows, rows, 1}
	default:
		found := 1
		if _, err := w.store.Team(ctx, "acme", team(n/3)); err != nil {
			is.Equal(errs.CodeOf(err), errs.NotFound)
			return false
		}
		members, err := w.store.Members(ctx, "acme", team(n/3), q)
		is.NoErr(err)
		seen, all = []int{found, members.Total, len(members.Rows)}, []int{1, rows, 1}
	}
	switch fmt.Sprint(seen) {
	case fmt.Sprint(all):
		return true
	case fmt.Sprint(make([]int, len(all))):
		return false
	}
	t.Fatalf("thing %d is half visible: %v of %v", n, seen, all)
	return false
}

// left returns the number of rows of reports, users and teams, visible or not, and of notes and
// jobs.
func (w *world) left(t *testing.T) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), w.db, "acme")
	count := func(from string) string { return `(SELECT count(*) FROM ` + from + ` AND tenant_id = $1)` }
	is.New(t).NoErr(c.One(ctx, "Row", `SELECT `+strings.Join([]string{
		count(`tc_comments WHERE true`),
		count(`tc_activities WHERE kind = 'report'`), count(`tc_feed WHERE username LIKE 'u%'`),
		count(`tc_notifications WHERE username LIKE 'u%'`),
		count(`tc_uploads WHERE username <> ''`), count(`tc_memberships WHERE true`),
		count(`tc_removals WHERE true`), count(`tc_jobs WHERE true`),
	}, " + "), []any{"acme"}, &n))
	return n
}

// TestKilledWhileRemovingSize: a process that deletes reports, users and teams on both engines, and
// removes their rows, is killed a hundred times. After each kill all rows of each exist or none
// does, and in the end nothing is left.
func TestKilledWhileRemovingSize(t *testing.T) {
	if urls := os.Getenv(killedDatabases); urls != "" {
		deleteUntilKilled(t, strings.Split(urls, "\n"))
		return
	}
	urls := []string{"sqlite:" + filepath.Join(t.TempDir(), "test.db"), dbtest.PostgresURL(t)}
	var worlds []*world
	for _, url := range urls {
		w := open(t, url)
		defer func() { _ = w.db.Close() }()
		is.New(t).NoErr(migrations.Run(t.Context(), w.db))
		w.fill(t)
		worlds = append(worlds, w)
	}
	gone, progress, before := make([]int, len(worlds)), make([]int, len(worlds)), make([]int, len(worlds))
	done := func() bool { // some kills have interrupted deletes, and many have interrupted steps
		for i := range worlds {
			if gone[i] < 5 || progress[i] < 6 {
				return false
			}
		}
		return true
	}
	for n := 0; n < kills || !done(); n++ {
		killOne(t, urls, time.Duration(20+n)*time.Millisecond)
		for i, w := range worlds {
			gone[i] = 0
			teams := 0
			for thing := range 3 * things {
				switch there := w.there(t, thing); {
				case !there:
					gone[i]++
				case thing%3 == 2:
					teams++
				}
			}
			of, err := w.store.Memberships(t.Context(), "acme", "m000", paging.Query{Limit: 100})
			is.New(t).NoErr(err)
			is.New(t).Equal([]int{of.Total, len(of.Rows)}, []int{teams, teams})
			if now := w.left(t); now < before[i] {
				progress[i]++
				before[i] = now
			} else if before[i] == 0 {
				before[i] = now
			}
		}
	}
	for _, w := range worlds {
		is := is.New(t)
		for n := range 3 * things {
			is.NoErr(w.delete(t.Context(), n))
			is.True(!w.there(t, n))
		}
		running, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { w.jobs.Run(running); close(ended) }()
		for deadline := time.Now().Add(2 * time.Minute); w.left(t) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("rows are left: ", w.left(t))
			}
		}
		stop()
		<-ended
	}
}

// killOne makes a process delete something in each database, and remove rows, and kills it at a
// random moment.
func killOne(t *testing.T, urls []string, within time.Duration) {
	t.Helper()
	is := is.New(t)
	child := exec.Command(os.Args[0], "-test.run=^TestKilledWhileRemovingSize$")
	child.Env = append(os.Environ(), killedDatabases+"="+strings.Join(urls, "\n"))
	out, err := child.StdoutPipe()
	is.NoErr(err)
	is.NoErr(child.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // it has started
	is.NoErr(err)
	time.Sleep(rand.N(within))
	is.NoErr(child.Process.Kill())
	_ = child.Wait()
}

func deleteUntilKilled(t *testing.T, urls []string) {
	var worlds []*world
	for _, url := range urls {
		w := open(t, url)
		w.there(t, 0) // it is connected
		worlds = append(worlds, w)
	}
	fmt.Println("begun")
	for _, w := range worlds {
		go w.jobs.Run(t.Context())
		go func() {
			for _, n := range rand.Perm(3 * things) {
				if w.there(t, n) {
					is.New(t).NoErr(w.delete(t.Context(), n))
					return // the next process deletes the next one
				}
			}
		}()
	}
	select {}
}

// fill adds the reports, users and teams.
func (w *world) fill(t *testing.T) {
	t.Helper()
	at := bunx.At(time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC))
	later := bunx.At(time.Now().Add(24 * time.Hour))
	is.New(t).NoErr(bunx.Write(t.Context(), w.db, "acme", func(ctx context.Context, c bunx.Conn) (err error) {
		insert := func(into string, n int, values func(i int) []any) {
			var args []any
			for i := range n {
				args = append(args, values(i)...)
			}
			if err == nil {
				_, err = c.Exec(ctx, `INSERT INTO `+into+` VALUES `+bunx.Values(n, len(args)/n), args...)
			}
		}
		insert(`tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)`, 1, func(int) []any {
			return []any{"acme", "Acme", "{}", "", at, at}
		})
		insert(`tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs, may_view_all_teams, may_view_all_users,
			may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at)`,
			things+rows+1, func(i int) []any {
				name := user(i)
				if i == things {
					name = "root"
				} else if i > things {
					name = fmt.Sprintf("m%03d", i-things-1)
				}
				return []any{
					"acme", name, name, name, name, "local", name == "root", true, false, false, false, false,
					false, "{}", "{}", 0, false, false, at, at,
				}
			})
		insert(`tc_activities (tenant_id, id, type, kind, entity_id, user_id, excerpt, created_at)`, rows,
			func(i int) []any {
				return []any{"acme", fmt.Sprintf("a%03d", i), "note", "tag", "t", "root", "", at}
			})
		for thing := range things {
			id, of := func(i int) string { return fmt.Sprintf("%s-%03d", report(thing).ID, i) }, report(thing).ID
			parent, replies := func(i int) int { return (i - 1) / 7 }, make([]int, rows)
			for i := 1; i < rows; i++ {
				replies[parent(i)]++
			}
			insert(`tc_comment_threads (tenant_id, kind, entity_id, total)`, 1, func(int) []any {
				return []any{"acme", "report", of, 1}
			})
			insert(`tc_comments (tenant_id, id, kind, entity_id, parent_id, user_id, message, public, replies, `+
				`created_at, updated_at)`, rows, func(i int) []any {
				above := any(nil)
				if i > 0 {
					above = id(parent(i))
				}
				return []any{"acme", id(i), "report", of, above, "root", "says", false, replies[i], at, at}
			})
			insert(`tc_activities (tenant_id, id, type, kind, entity_id, comment_id, user_id, excerpt, `+
				`created_at)`, rows, func(i int) []any {
				return []any{"acme", id(i), "reportAddedComment", "report", of, id(i), "root", "says", at}
			})
			insert(`tc_feed (tenant_id, activity_id, username, created_at)`, rows, func(i int) []any {
				return []any{"acme", fmt.Sprintf("a%03d", i), user(thing), at}
			})
			insert(`tc_notifications (tenant_id, id, username, type, state, title, body, created_at, `+
				`updated_at)`, rows, func(i int) []any {
				return []any{"acme", user(thing) + id(i), user(thing), "note", "pending", "", "", at, at}
			})
			insert(`tc_uploads (tenant_id, id, username, filename, content_type, size, chunks, created_at, `+
				`expires_at)`, rows, func(i int) []any {
				return []any{"acme", id(i), user(thing), "f", "text/plain", 0, 0, at, later}
			})
			insert(`tc_teams (tenant_id, id, name, slug, label, search, domain, created_at, updated_at)`, 1,
				func(int) []any {
					return []any{"acme", team(thing), of, of, of, of, "local", at, at}
				})
			insert(`tc_memberships (tenant_id, team_id, username, role, created_at)`, rows, func(i int) []any {
				return []any{"acme", team(thing), fmt.Sprintf("m%03d", i), 1, at}
			})
		}
		return err
	}))
}
