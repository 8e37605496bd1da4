package bunx_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

// notes is a database with the table notes, and its file.
func notes(t *testing.T) (db *bun.DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "notes.db")
	db = opened(t, path)
	_, err := db.ExecContext(
		t.Context(),
		"CREATE TABLE notes (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, note TEXT NOT NULL UNIQUE) STRICT",
	)
	is.New(t).NoErr(err)
	return db, path
}

func opened(t *testing.T, path string) *bun.DB {
	t.Helper()
	db, err := engines.Open("sqlite:" + path)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// note returns a write of a note. It fails if the note exists.
func note(db *bun.DB, tenant, text, group string) bunx.Soon {
	return bunx.Soon{
		Run: func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx, "INSERT INTO notes (tenant, note) VALUES ($1, $2)", tenant, text)
			return bunx.Err(err, "Note")
		},
		Decide: func(context.Context) (bunx.DeferredWrite, error) {
			return bunx.DeferredWrite{Key: text, Value: text, Group: group}, nil
		},
	}
}

// noted returns all notes in order, separated by spaces.
func noted(t *testing.T, db *bun.DB) string {
	t.Helper()
	var all []string
	is.New(t).NoErr(db.NewSelect().Table("notes").Column("note").Order("id").Scan(t.Context(), &all))
	return strings.Join(all, " ")
}

func waitingFor(t *testing.T, db *bun.DB, tenant, key string) (values []any) {
	t.Helper()
	is.New(t).NoErr(bunx.FindDeferred(db, tenant, key, func(found []any) error { values = found; return nil }))
	return values
}

var errFault = errors.New("fault")

// TestWriteSoon: writes are made at once if the writer is free, and otherwise before the next
// transaction begins, in order.
func TestWriteSoon(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	is.NoErr(bunx.WriteSoon(ctx, db, "a", note(db, "a", "free", "")))
	is.Equal(noted(t, db), "free")
	next := make(chan string)
	is.NoErr(bunx.InTx(ctx, db, func(own context.Context) error {
		for _, text := range []string{"one", "two", "three"} {
			is.NoErr(bunx.WriteSoon(ctx, db, "a", note(db, "a", text, "")))
		}
		is.NoErr(bunx.WriteSoon(own, db, "a", note(db, "a", "joins", ""))) // the transaction
		is.Equal(noted(t, db), "free")
		is.Equal(waitingFor(t, db, "a", "two"), []any{"two"})
		is.Equal(waitingFor(t, db, "b", "two"), nil) // another tenant's
		are := func(want bool) func(any) bool { return func(any) bool { return want } }
		is.True(!bunx.DropDeferred(db, "a", "three", are(false)))
		is.True(bunx.DropDeferred(db, "a", "three", are(true)))
		is.True(!bunx.DropDeferred(db, "a", "three", are(true)))
		go func() {
			_ = bunx.Write(ctx, db, "b", func(ctx context.Context, c bunx.Conn) error {
				var all []string
				err := c.NewSelect().Table("notes").Column("note").Order("id").Scan(ctx, &all)
				next <- strings.Join(all, " ")
				return err
			})
		}()
		return nil
	}))
	is.Equal(<-next, "free joins one two")
	is.Equal(waitingFor(t, db, "a", "two"), nil)
	is.Equal(noted(t, db), "free joins one two")
}

// TestDeferredWritesSurviveOthers: writes made before a transaction began are kept if it fails or
// its caller disconnects.
func TestDeferredWritesSurviveOthers(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	fail := func(ctx context.Context, text string) error {
		return bunx.InTx(ctx, db, func(context.Context) error {
			is.NoErr(bunx.WriteSoon(t.Context(), db, "a", note(db, "a", text, "")))
			return errFault
		})
	}
	is.Equal(fail(ctx, "one"), errFault)
	is.Equal(noted(t, db), "one") // by the failed transaction
	gone, cancel := context.WithCancel(ctx)
	err := bunx.InTx(gone, db, func(context.Context) error {
		is.NoErr(bunx.WriteSoon(ctx, db, "a", note(db, "a", "two", "")))
		cancel()
		return nil
	})
	is.True(err != nil)
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(noted(t, db), "one two")
}

// TestDeferredWritesThatFail: a write that fails is dropped with the later writes of its group,
// including those that are deferred soon after. Other writes are made.
func TestDeferredWritesThatFail(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	began, dropped := time.Now(), []string{}
	is.NoErr(bunx.InTx(ctx, db, func(own context.Context) error {
		for _, n := range []struct{ text, group string }{
			{"a", "g"}, {"taken", "g"}, {"b", "g"}, {"c", ""}, {"d", "h"},
		} {
			w := note(db, "t", n.text, n.group)
			decide := w.Decide
			w.Decide = func(ctx context.Context) (bunx.DeferredWrite, error) {
				d, err := decide(ctx)
				d.Dropped = func() { dropped = append(dropped, n.text) }
				return d, err
			}
			is.NoErr(bunx.WriteSoon(ctx, db, "t", w))
		}
		return bunx.WriteSoon(own, db, "t", note(db, "t", "taken", ""))
	}))
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(noted(t, db), "taken a c d")
	is.Equal(dropped, []string{"taken", "b"})

	late := note(db, "t", "late", "")
	late.After, late.Since = "g", began
	is.Equal(errs.CodeOf(bunx.WriteSoon(ctx, db, "t", late)), errs.Conflict)
	late.Since = time.Now().Add(time.Second) // it began afterwards
	is.NoErr(bunx.WriteSoon(ctx, db, "t", late))
}

// TestDeferredWritesAreBounded: one tenant cannot use all places.
func TestDeferredWritesAreBounded(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	all := 0
	is.NoErr(bunx.InTx(ctx, db, func(context.Context) error {
		fill := func(tenant string) (of int) {
			for ; ; of++ {
				if err := bunx.WriteSoon(
					ctx, db, tenant, note(db, tenant, fmt.Sprint(tenant, "-", of), ""),
				); err != nil {
					is.Equal(errs.CodeOf(err), errs.Unavailable)
					break
				}
			}
			refused := note(db, tenant, "", "")
			refused.Decide = func(context.Context) (bunx.DeferredWrite, error) {
				t.Error("decided on: the answer would depend on what is stored")
				return bunx.DeferredWrite{}, errFault
			}
			is.Equal(errs.CodeOf(bunx.WriteSoon(ctx, db, tenant, refused)), errs.Unavailable)
			return of
		}
		is.Equal(fill("greedy"), 2048)
		for n := range 12 { // another tenant with many writes
			all += fill(fmt.Sprint("t", n))
		}
		is.True(all+2048 <= 8192)
		for n := range 20 { // other tenants
			tenant := fmt.Sprint("other", n)
			is.NoErr(bunx.WriteSoon(ctx, db, tenant, note(db, tenant, tenant, "")))
		}
		return nil
	}))
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(len(strings.Fields(noted(t, db))), 2048+all+20)
}

// TestDeferredWritesBesideAnotherProcess: a write does not wait for a writer in another process.
// Deferred writes are made when that one has ended.
func TestDeferredWritesBesideAnotherProcess(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, path := notes(t)
	is.NoErr(bunx.InTx(ctx, opened(t, path), func(context.Context) error {
		is.NoErr(bunx.WriteSoon(ctx, db, "a", note(db, "a", "one", "")))
		is.Equal(waitingFor(t, db, "a", "one"), []any{"one"})
		return nil
	}))
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(noted(t, db), "one")
}

// TestDeferredWritesInParallel: with many concurrent writers no deferred write is lost, and each is
// found until it is stored.
func TestDeferredWritesInParallel(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = bunx.InTx(ctx, db, func(context.Context) error {
					time.Sleep(60 * time.Millisecond)
					return errFault
				})
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := range 25 {
				text := fmt.Sprint(w, "-", i)
				if err := bunx.WriteSoon(ctx, db, "a", note(db, "a", text, "")); err != nil {
					t.Error(err)
				}
				there := false
				err := bunx.FindDeferred(db, "a", text, func(values []any) error {
					n, err := db.NewSelect().Table("notes").Where("note = ?", text).Count(ctx)
					there = n == 1 || slices.Contains(values, any(text))
					return err
				})
				if err != nil || !there {
					t.Error("it is nowhere:", text, err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	all.Wait()
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(len(strings.Fields(noted(t, db))), 8*25)
}

// TestNothingIsWrittenBesideADecision: of two writes, one that is made at once and one whose Decide
// runs, the later one finds the other.
func TestNothingIsWrittenBesideADecision(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	deciding, decide, first, second := make(chan bool), make(chan bool), make(chan error, 1), make(chan error, 1)
	slow, there := note(db, "a", "one", ""), false
	slow.Decide = func(context.Context) (bunx.DeferredWrite, error) {
		close(deciding)
		<-decide
		return bunx.DeferredWrite{Key: "one", Value: "one"}, nil
	}
	is.NoErr(bunx.InTx(ctx, db, func(context.Context) error {
		go func() { first <- bunx.WriteSoon(ctx, db, "a", slow) }()
		<-deciding
		return nil
	}))
	again := note(db, "a", "one", "")
	again.Decide = func(context.Context) (bunx.DeferredWrite, error) {
		err := bunx.FindDeferred(db, "a", "one", func(values []any) error {
			there = noted(t, db) == "one" || len(values) == 1
			return nil
		})
		return bunx.DeferredWrite{}, errors.Join(err, errFault)
	}
	go func() { second <- bunx.WriteSoon(ctx, db, "a", again) }()
	select {
	case err := <-second:
		t.Error("it was written beside a decision:", err)
	case <-time.After(300 * time.Millisecond): // it waits
	}
	close(decide)
	is.NoErr(<-first)
	is.True(errors.Is(<-second, errFault))
	is.True(there)
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(noted(t, db), "one")
}

// TestDropDeferredOf: matching writes of a tenant are dropped, but not by a dry run.
func TestDropDeferredOf(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db, _ := notes(t)
	is.NoErr(bunx.InTx(ctx, db, func(own context.Context) error {
		for _, text := range []string{"one", "two"} {
			is.NoErr(bunx.WriteSoon(ctx, db, "a", note(db, "a", text, "")))
		}
		one := func(v any) bool { return v == "one" }
		is.NoErr(bunx.DryRun(ctx, db, func(ctx context.Context) error {
			is.Equal(bunx.DropDeferredOf(ctx, db, "a", one), 0)
			return nil
		}))
		is.Equal(bunx.DropDeferredOf(own, db, "b", one), 0)
		is.Equal(bunx.DropDeferredOf(own, db, "a", one), 1)
		is.Equal(waitingFor(t, db, "a", "one"), nil)
		return nil
	}))
	is.NoErr(bunx.WriteDeferred(ctx, db))
	is.Equal(noted(t, db), "two")
}
