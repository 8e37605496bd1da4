package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	agentstore "github.com/tenantcontent/tenantcontent/internal/store/agents"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	messagestore "github.com/tenantcontent/tenantcontent/internal/store/messages"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
)

// storageOf opens the database of a command.
func storageOf(t *testing.T, flags []string) *bun.DB {
	t.Helper()
	url, ok := strings.CutPrefix(flags[0], "--database=")
	if !ok {
		url = "sqlite:" + filepath.Join(strings.TrimPrefix(flags[0], "--data="), "tenantcontent.db")
	}
	db, err := engines.Open(url)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// bury adds a dead job to the tenant acme.
func bury(t *testing.T, db *bun.DB, kind, id, why string) {
	t.Helper()
	is, jobs, now := is.New(t), queuestore.New(db), time.Now().UTC()
	is.NoErr(jobs.Insert(t.Context(), "acme", []queue.Job{{
		ID:        id,
		Kind:      kind,
		Payload:   []byte("null"),
		State:     queue.Ready,
		Due:       now,
		CreatedAt: now,
	}}))
	claimed, err := jobs.Claim(
		t.Context(), queue.Line{Tenant: "acme", Kind: kind}, 1,
		queue.Claim{Lease: id, Node: "n", Until: now.Add(time.Hour)},
	)
	is.NoErr(err)
	held, err := jobs.Bury(t.Context(), claimed[0], why, now)
	is.NoErr(err)
	is.True(held)
}

// someDead adds e-mails of the tenant acme whose jobs are dead, and returns a function that reads
// the state of one.
func someDead(t *testing.T, flags []string, ids ...string) (state func(id string) messages.State) {
	t.Helper()
	is, db := is.New(t), storageOf(t, flags)
	mails, now := messagestore.New(db), time.Now().UTC()
	for _, id := range ids {
		is.NoErr(mails.InsertMessages(t.Context(), "acme", []messages.Message{{
			ID: id, App: "shop", Type: messages.TypeEmail,
			Recipient: "ann@example.com", Title: "Paid", CreatedAt: now, UpdatedAt: now,
			Progress: messages.Progress{State: messages.Dead, Attempts: 3, EndedAt: &now},
		}}))
		bury(t, db, messages.JobEmail, id, "The mail server \x1b[1mis away.")
	}
	return func(id string) messages.State {
		t.Helper()
		m, err := mails.AnyMessage(t.Context(), "acme", id)
		is.NoErr(err)
		return m.State
	}
}

// TestQueueRequeuesRun: a run of an agent is requeued with its job, although the command has no
// language model.
func TestQueueRequeuesRun(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is := is.New(t)
		done(t, "", append([]string{"migrate"}, flags...)...)
		done(t, "", append([]string{"tenant", "add", "acme"}, flags...)...)
		const id = "00000000-0000-7000-8000-000000000001"
		db, now, why := storageOf(t, flags), time.Now().UTC(), "The model is away."
		runs := agentstore.New(db)
		is.NoErr(runs.InsertRun(t.Context(), "acme", agents.Run{
			ID: id, App: "shop", Agent: "clerk",
			Trigger: agents.ByCron, Input: []byte("null"), CreatedAt: now, UpdatedAt: now,
			Progress: agents.Progress{State: agents.Dead, Attempts: 5, Error: &why, EndedAt: &now},
		}))
		bury(t, db, agents.JobRun, id, why)
		is.Equal(done(t, "", append([]string{"queue", "requeue", "acme", id}, flags...)...), "Put back 1 job.\n")
		r, err := runs.AnyRun(t.Context(), "acme", id)
		is.NoErr(err)
		is.Equal(r.State, agents.Pending)
	})
}

// TestQueue counts jobs, lists dead ones, requeues and removes them, on both databases.
func TestQueue(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, with := is.New(t), func(args ...string) []string { return append(args, flags...) }
		done(t, "", with("migrate")...)
		done(t, "", with("tenant", "add", "acme")...)
		done(t, "", with("tenant", "add", "evil")...)
		const id = "00000000-0000-7000-8000-00000000000"
		const first, second, third = id + "1", id + "2", id + "3"
		state := someDead(t, flags, first, second, third)

		said := strings.Split(done(t, "", with("queue", "stats")...), "\n")
		is.Equal(strings.Fields(said[0]), []string{"TENANT", "KIND", "STATE", "JOBS", "FIRST", "DUE"})
		is.Equal(strings.Fields(said[1])[:4], []string{"acme", "email", "dead", "3"})
		for _, all := range []string{
			done(t, "", with("queue", "dead")...), done(t, "", with("queue", "dead", "--tenant=acme")...),
		} {
			rows := strings.Split(all, "\n")
			is.Equal(strings.Fields(rows[0]), []string{"TENANT", "ID", "KIND", "TRIES", "ENDED", "ERROR"})
			is.Equal(strings.Fields(rows[1])[:4], []string{"acme", first, "email", "1"})
			is.True(strings.HasSuffix(rows[1], `  The mail server \u001b[1mis away.`)) // control characters are escaped
			is.Equal(len(rows), 5)
		}
		is.True(!strings.Contains(done(t, "", with("queue", "dead", "--tenant=evil")...), first))

		is.Equal(done(t, "", with("queue", "requeue", "acme", first)...), "Put back 1 job.\n")
		is.Equal(state(first), messages.Pending) // so that a server with a mail server can send it
		fails(t, 1, "There is no dead job "+first, "", with("queue", "requeue", "acme", second, first)...)
		is.Equal(state(second), messages.Dead) // all or none
		fails(t, 1, "There is no dead job "+second, "", with("queue", "requeue", "evil", second)...)
		fails(t, 1, "no dead job of the tenant evil", "", with("queue", "discard", "evil", second)...)
		is.Equal(
			done(t, "", with("queue", "discard", "acme", second, first)...),
			"Removed 1 job; the other ids are those of no dead job.\n",
		)
		is.Equal(done(t, "", with("queue", "discard", "acme", third)...), "Removed 1 job.\n")
		is.Equal(
			strings.Fields(strings.Split(done(t, "", with("queue", "stats")...), "\n")[1])[:4],
			[]string{"acme", "email", "ready", "1"},
		)
		for _, args := range []string{
			"queue dead --tenant=none", "queue requeue none " + first, "queue discard none " + first,
		} {
			fails(t, 1, "Tenant none not found", "", with(strings.Fields(args)...)...)
		}
		fails(t, 2, "<id>", "", with("queue", "requeue", "acme")...)
	})
}
