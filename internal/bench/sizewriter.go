package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// What the tenant has whose long changes are measured.
const (
	longReports  = 50_000
	longComments = 200_000 // on the first report
	longFeed     = 200_000 // of the user reader, and as many notifications
	longImported = 10_000
	firstReport  = "00000000-0000-7000-8000-000000000001"
)

// longChange is a change of one tenant that takes long. It returns when all of it is done.
type longChange struct {
	name string
	do   func(w *world, as context.Context, one, many []byte) error
}

var longChanges = []longChange{
	{"a dry run of a restore", func(w *world, as context.Context, one, _ []byte) error {
		_, err := w.app.Bundles.Restore(as, bytes.NewReader(one), bundles.ImportOptions{DryRun: true})
		return err
	}},
	{"an import", func(w *world, as context.Context, _, many []byte) error {
		_, err := w.app.Bundles.Import(as, bytes.NewReader(many), bundles.ImportOptions{Rule: "overwrite"})
		return err
	}},
	{"a delete with its comments", func(w *world, as context.Context, _, _ []byte) error {
		if err := w.app.Content.Delete(as, "report", firstReport); err != nil {
			return err
		}
		return w.gone(as, `tc_comments WHERE tenant_id = $1`)
	}},
	{"a delete of a user", func(w *world, as context.Context, _, _ []byte) error {
		if err := w.app.Principals.DeleteUser(as, "reader", ""); err != nil {
			return err
		}
		if err := w.gone(as, `tc_feed WHERE tenant_id = $1`); err != nil {
			return err
		}
		return w.gone(as, `tc_notifications WHERE tenant_id = $1`)
	}},
	{"a restore", func(w *world, as context.Context, one, _ []byte) error {
		_, err := w.app.Bundles.Restore(as, bytes.NewReader(one), bundles.ImportOptions{})
		return err
	}},
}

// gone waits until there are no rows of a tenant.
func (w *world) gone(ctx context.Context, rows string) error {
	for left := true; left; time.Sleep(100 * time.Millisecond) {
		ctx, c := bunx.For(ctx, w.db, longTenant)
		if err := c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM `+rows+`)`, longTenant).Scan(&left); err != nil {
			return err
		}
	}
	return nil
}

const longTenant = "tenant-0"

// besideLongChanges measures the log-ins and reads of another tenant while a change takes long.
func besideLongChanges(ctx context.Context, engine string, matches *regexp.Regexp) (all []result, err error) {
	name := func(c longChange) string { return "size: log-ins and reads beside " + c.name }
	changes := slices.DeleteFunc(slices.Clone(longChanges), func(c longChange) bool {
		return !matches.MatchString(name(c))
	})
	if len(changes) == 0 {
		return nil, nil
	}
	w, err := newWorld(ctx, engine)
	defer func() { err = errors.Join(err, w.close()) }()
	if err != nil {
		return nil, err
	}
	one, many, err := w.fillLong(ctx)
	if err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = w.app.Run(working) })
	defer running.Wait()
	defer stop()
	as := actor.With(ctx, actor.Actor{Tenant: longTenant, User: "admin", Superuser: true})
	for _, change := range changes {
		fmt.Fprintf(os.Stderr, "%s on %s …\n", name(change), engine)
		ended, begin := make(chan error, 1), time.Now()
		go func() { ended <- change.do(w, as, one, many) }()
		logins, reads, err := w.whileRunning(ended)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name(change), err)
		}
		p99 := max(percentile(logins, 0.99), percentile(reads, 0.99))
		all = append(all, result{
			name:   name(change),
			engine: engine, ours: fmt.Sprintf("log-ins %s; reads %s", percentiles(logins), percentiles(reads)),
			bare: fmt.Sprintf("for %s", time.Since(begin).Round(100*time.Millisecond)), ratio: p99 / 0.3,
			must: "p99 ≤ 300ms", met: p99 <= 0.3,
		})
	}
	return all, nil
}

// fillLong makes the rows of the tenant, and two archives: of one of its reports, and of many.
func (w *world) fillLong(ctx context.Context) (one, many []byte, err error) {
	as := actor.With(ctx, actor.Actor{Tenant: longTenant, User: "admin", Superuser: true})
	for _, u := range []principals.User{
		{Username: "admin", Enabled: true, Superuser: true}, {Username: "reader", Enabled: true},
	} {
		if _, err := w.app.Principals.CreateUser(as, u, password); err != nil {
			return nil, nil, err
		}
	}
	for _, rows := range []struct {
		n      int
		insert string
	}{
		{longReports,
			`INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug, owner_id, data, system,
				created_at, updated_at)
			SELECT TENANT, 'report', ID, NAME, NAME, NAME, NAME, '*', '{}', false, TIME, TIME FROM NUMBERS`},
		{longComments,
			`INSERT INTO tc_comments (tenant_id, id, kind, entity_id, user_id, message, public, replies, created_at, updated_at)
			SELECT TENANT, ID, 'report', '` + firstReport + `', 'admin', 'said', true, 0, TIME, TIME FROM NUMBERS`},
		{longFeed, `INSERT INTO tc_activities (tenant_id, id, type, kind, entity_id, user_id, excerpt, created_at)
			SELECT TENANT, ID, 'comment', 'report', ID, 'admin', 'said', TIME FROM NUMBERS`},
		{
			longFeed,
			`INSERT INTO tc_feed (tenant_id, activity_id, username, created_at) SELECT TENANT, ID, 'reader', TIME ` +
				`FROM NUMBERS`,
		},
		{longFeed,
			`INSERT INTO tc_notifications (tenant_id, id, username, type, state, title, body, created_at, updated_at)
			SELECT TENANT, ID, 'reader', 'notice', 'pending', 'News', 'said', TIME, TIME FROM NUMBERS`},
	} {
		if _, err := w.write(ctx, longTenant, w.numbered(rows.insert, longTenant, 1, rows.n)); err != nil {
			return nil, nil, err
		}
	}
	_, err = w.write(ctx, longTenant, `INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total)
		SELECT tenant_id, kind, entity_id, count(*) FROM tc_comments WHERE tenant_id = $1
			GROUP BY tenant_id, kind, entity_id`,
		longTenant)
	if err == nil {
		one, err = w.archiveOf(as, 2, 2)
	}
	if err == nil {
		many, err = w.archiveOf(as, 2, longImported)
	}
	return one, many, errors.Join(err, w.analyze(ctx))
}

// archiveOf returns an archive of the reports from one number to another.
func (w *world) archiveOf(as context.Context, from, to int) ([]byte, error) {
	var m bundles.Manifest
	for i := from; i <= to; i++ {
		m.Entries = append(m.Entries, bundles.Entry{
			Type:     "report",
			EntityID: fmt.Sprintf("00000000-0000-7000-8000-%012x", i),
		})
	}
	e, err := w.app.Bundles.ExportManifest(as, m)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	err = e.Write(as, &file)
	return file.Bytes(), err
}

// whileRunning logs the tenant default in and reads, again and again, until something has ended,
// and returns the times in seconds.
func (w *world) whileRunning(ended <-chan error) (logins, reads []float64, err error) {
	c, err := dial(w.ours, w.token)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = c.conn.Close() }()
	timed := func(times *[]float64, method, path, body string) error {
		begin := time.Now()
		_, err := c.do(method, path, body)
		*times = append(*times, time.Since(begin).Seconds())
		return err
	}
	for {
		err := timed(
			&logins, "POST", "/api/login/local",
			`{"tenant": "default", "username": "admin", "password": "`+password+`"}`,
		)
		for range 5 {
			err = errors.Join(err, timed(&reads, "GET", "/api/colors?limit=20", ""))
		}
		if err != nil {
			return nil, nil, err
		}
		select {
		case err := <-ended:
			return logins, reads, err
		default:
		}
	}
}
