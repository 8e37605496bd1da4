package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// The environment of a node that is a process of its own.
const (
	nodeDatabase = "AGENTS_TEST_DATABASE"
	nodeModel    = "AGENTS_TEST_MODEL"
	nodeKey      = "AGENTS_TEST_KEY"
)

// node opens an App as one of several processes with the same database.
func node(
	t *testing.T, url, model, key string, now func() time.Time, more ...func(*tenantcontent.Config),
) *tenantcontent.App {
	t.Helper()
	is := is.New(t)
	db, err := engines.Open(url)
	is.NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	provider, err := openai.New(openai.Options{
		URL:    model,
		Models: []openai.Model{{Name: "m"}},
		Log:    slog.New(slog.DiscardHandler),
	})
	is.NoErr(err)
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	c := tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: key,
		AI:        provider,
		Now:       now,
		Log:       slog.New(slog.DiscardHandler),
	}
	for _, set := range more {
		set(&c)
	}
	app, err := tenantcontent.Open(c)
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(app.Close()) })
	return app
}

const killedManifest = `
access: [GET colors/*]
agents:
  worker: {instructions: Work., tools: [note, slow]}
`

var killedTools = map[string]string{
	"tools/note.js": "export default async ({ args, idempotencyKey, emit }) => { await emit('note.' + args.n, { " +
		"key: idempotencyKey }); return 'noted' }",
	// It says that it has begun, and ends when there is the color go.
	"tools/slow.js": `export const config = { timeout: 120000 }
export default async ({ idempotencyKey, run, emit, email, fetch }) => {
	await emit('slow', { key: idempotencyKey, attempt: run.attempt })
	for (const times of [1, 2]) await emit('once', { key: idempotencyKey })
	await email('ann@example.com', { subject: 'Once', text: idempotencyKey })
	while ((await fetch('colors/go')).status !== 200) for (const end = Date.now() + 100; Date.now() < end;);
	return 'slowly'
}`,
}

// killedModel calls note, then slow and note in one answer, and ends.
func killedModel(r aitest.Request) aitest.Turn {
	results := 0
	for _, m := range r.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	switch results {
	case 0:
		return aitest.Turn{Calls: []ai.ToolCall{{ID: "1", Name: "note", Arguments: `{"n": 1}`}}}
	case 1:
		return aitest.Turn{
			Calls: []ai.ToolCall{
				{ID: "2", Name: "slow", Arguments: `{}`}, {ID: "3", Name: "note", Arguments: `{"n": 2}`},
			},
		}
	}
	return aitest.Turn{Text: []string{"Done after ", fmt.Sprint(results)}}
}

// TestKilledNode: the process that works on a run is killed while a tool works. Another one ends
// the run: it requests no answer again, calls no tool again that had ended, and calls the one that
// had begun again with the same key.
func TestKilledNode(t *testing.T) {
	if url := os.Getenv(nodeDatabase); url != "" {
		// until the process is killed
		node(t, url, os.Getenv(nodeModel), os.Getenv(nodeKey), time.Now).Queue().Run(t.Context())
		return
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			is, url := is.New(t), "sqlite:"+filepath.Join(t.TempDir(), "test.db")
			if engine == "postgres" {
				url = dbtest.PostgresURL(t)
			}
			model, key := aitest.NewReplier(killedModel), tenantcontent.NewSecretKey()
			t.Cleanup(model.Close)
			var later atomic.Int64 // how far this process's clock is ahead
			app := node(t, url, model.URL, key, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
			_, err := app.AddTenant(
				t.Context(), tenants.Tenant{ID: "acme", Name: "Acme", Settings: tenants.Settings{AI: true}},
				"a long password",
			)
			is.NoErr(err)
			ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin", Superuser: true, AI: true})
			shop := deployed(t, ctx, app)
			run, err := app.Agents.Trigger(ctx, shop.ID, "worker", nil)
			is.NoErr(err)

			other := exec.Command(os.Args[0], "-test.run=^TestKilledNode$")
			other.Env = append(os.Environ(), nodeDatabase+"="+url, nodeModel+"="+model.URL, nodeKey+"="+key)
			is.NoErr(other.Start())
			defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
			until(t, "the other node's tool works", func() bool { return mails(t, ctx, app, shop.ID) == 1 })
			is.NoErr(other.Process.Kill())
			_ = other.Wait()
			r, steps, err := app.Agents.Run(ctx, shop.ID, "worker", run.ID)
			is.NoErr(err)
			is.Equal([]any{r.State, len(steps), steps[3].EndedAt == nil}, []any{agents.Running, 4, true})

			later.Store(int64(time.Hour)) // the lease of the dead node has ended
			_, err = app.Colors.Put(ctx, "go", "#00ff00")
			is.NoErr(err)
			working, stop := context.WithCancel(context.WithoutCancel(t.Context()))
			var all sync.WaitGroup
			all.Go(func() { app.Queue().Run(working) })
			defer all.Wait()
			defer stop()
			until(t, "the run ends", func() bool {
				r, steps, err = app.Agents.Run(ctx, shop.ID, "worker", run.ID)
				is.NoErr(err)
				return r.State.Ended()
			})
			is.Equal(
				[]any{r.State, *r.Result, r.Attempts, r.Steps, len(steps)},
				[]any{agents.Done, "Done after 3", 2, 3, 6},
			)
			is.Equal(len(model.Requests()), 3) // no answer was asked for twice
			slow := run.ID + "-4"
			is.Equal(keys(t, ctx, app, shop.ID), map[string][]string{
				"note.1": {run.ID + "-2"},
				"slow":   {slow, slow},
				"once":   {slow, slow},
				"note.2": {run.ID + "-5"},
			})
			is.Equal(mails(t, ctx, app, shop.ID), 1) // what was emitted and sent alike is not again
		})
	}
}

// deployed returns a deployed app with the agent and the tools of killedManifest.
func deployed(t *testing.T, ctx context.Context, app *tenantcontent.App) apps.Shown {
	t.Helper()
	is := is.New(t)
	shop, err := app.Apps.Create(ctx, apps.App{Type: apps.Report, Name: "Shop"})
	is.NoErr(err)
	files := map[string]string{"informer.yaml": killedManifest}
	for name, text := range killedTools {
		files[name] = text
	}
	for name, text := range files {
		_, err := app.Apps.PutFile(ctx, shop.ID, entity.File{
			Path: name, ContentType: "text/plain",
		}, strings.NewReader(text))
		is.NoErr(err)
	}
	_, err = app.Apps.Deploy(ctx, shop.ID, apps.PublishOptions{})
	is.NoErr(err)
	return shop
}

// TestSlowToolsLeavePlaces: while tools of a tenant work, its other scripts have places.
func TestSlowToolsLeavePlaces(t *testing.T) {
	is, model := is.New(t), aitest.NewReplier(killedModel)
	t.Cleanup(model.Close)
	// two of one tenant
	scripts, err := quickjs.New(quickjs.Options{Processes: 4, Limits: jsvm.Limits{Time: handlers.MaxTime}})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(scripts.Close()) })
	app := node(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"), model.URL, tenantcontent.NewSecretKey(),
		time.Now, func(c *tenantcontent.Config) {
			c.Scripts, c.Agents.Tools = jsvm.NewEngine(jsvm.Parts{Runtime: scripts}, nil), 1
		})
	_, err = app.AddTenant(
		t.Context(), tenants.Tenant{ID: "acme", Name: "Acme", Settings: tenants.Settings{AI: true}},
		"a long password",
	)
	is.NoErr(err)
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "admin", Superuser: true, AI: true})
	shop := deployed(t, ctx, app)
	working, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() { app.Queue().Run(working) })
	defer all.Wait()
	defer stop()
	var runs [2]agents.Run
	for i := range runs {
		runs[i], err = app.Agents.Trigger(ctx, shop.ID, "worker", nil)
		is.NoErr(err)
	}
	atWork := func() (calls, slow int) {
		for _, run := range runs {
			_, steps, err := app.Agents.Run(ctx, shop.ID, "worker", run.ID)
			is.NoErr(err)
			if n := len(steps); n > 0 && steps[n-1].Kind == agents.ToolStep && steps[n-1].EndedAt == nil {
				calls++
				if steps[n-1].Tool == "slow" {
					slow++
				}
			}
		}
		return calls, slow
	}
	until(t, "a tool works, and another one waits", func() bool {
		calls, slow := atWork()
		return calls == 2 && slow > 0
	})
	other, err := app.Apps.Create(ctx, apps.App{Type: apps.Report, Name: "Other"})
	is.NoErr(err)
	_, err = app.Apps.PutFile(
		ctx, other.ID, entity.File{
			Path: "webhooks/a.js", ContentType: "text/plain",
		}, strings.NewReader("export const GET = () => 1"),
	)
	is.NoErr(err)
	_, err = app.Apps.Deploy(ctx, other.ID, apps.PublishOptions{}) // compiles in one of the tenant's two places
	is.NoErr(err)
	_, err = app.Colors.Put(ctx, "go", "#00ff00")
	is.NoErr(err)
	until(t, "both runs end", func() bool {
		for _, run := range runs {
			r, _, err := app.Agents.Run(ctx, shop.ID, "worker", run.ID)
			is.NoErr(err)
			if r.State != agents.Done {
				return false
			}
		}
		return true
	})
}

// keys returns the keys in the events of an app, by their names.
func keys(t *testing.T, ctx context.Context, app *tenantcontent.App, id string) map[string][]string {
	t.Helper()
	page, err := app.Messages.Events(ctx, id, messages.Filter{}, paging.Query{Limit: 100})
	is.New(t).NoErr(err)
	all := map[string][]string{}
	for _, e := range page.Rows {
		var payload struct{ Key string }
		is.New(t).NoErr(json.Unmarshal(e.Payload, &payload))
		all[e.Name] = append(all[e.Name], payload.Key)
	}
	return all
}

// mails returns how many e-mails an app has sent.
func mails(t *testing.T, ctx context.Context, app *tenantcontent.App, id string) int {
	t.Helper()
	page, _, err := app.Messages.Messages(ctx, id, messages.Filter{Type: messages.TypeEmail}, paging.Query{Limit: 1})
	is.New(t).NoErr(err)
	return page.Total
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
