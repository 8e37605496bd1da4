package bundles_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestMain is also the other process of TestKilled: it restores the archive that the environment
// names, stops in the middle of its second file and waits to be killed.
func TestMain(m *testing.M) {
	javascript.Child()
	url := os.Getenv("BUNDLES_TEST_URL")
	if url == "" {
		os.Exit(m.Run())
	}
	if err := restore(context.Background(), url, os.Getenv("BUNDLES_TEST_FILE")); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func restore(ctx context.Context, url, file string) error {
	db, err := engines.Open(url)
	if err != nil {
		return err
	}
	c := tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: tenantcontent.NewSecretKey(),
	}
	app, err := tenantcontent.Open(c)
	if err != nil {
		return err
	}
	n := 0
	libraries(&world{App: app, db: db}, func(p entity.FileTransferer) entity.Transferer { return stopping{p, &n} })(&c)
	if app, err = tenantcontent.Open(c); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	ctx = actor.With(ctx, actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
	_, err = app.Bundles.Restore(ctx, f, bundles.ImportOptions{})
	return err
}

// stopping is a library transferer that stops in its second file.
type stopping struct {
	entity.FileTransferer
	n *int
}

func (s stopping) PutFile(ctx ctx, tenant, id string, f entity.File, r io.Reader) error {
	if *s.n++; *s.n == 2 {
		_, _ = io.CopyN(io.Discard, r, 1<<20)
		fmt.Println("in the middle")
		time.Sleep(time.Hour) // a select {} would end a process in which nothing else runs: "all goroutines are asleep"
	}
	return s.FileTransferer.PutFile(ctx, tenant, id, f, r)
}

// TestKilled: a process that is killed in the middle of a restore leaves the old state whole, and
// the next one works.
func TestKilled(t *testing.T) {
	for engine, url := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "kill.db") },
		"postgres": func() string { return dbtest.PostgresURL(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			is, url := is.New(t), url()
			db, err := engines.Open(url)
			is.NoErr(err)
			defer func() { _ = db.Close() }()
			is.NoErr(tenantcontent.Migrate(t.Context(), db))
			w := opened(t, db)
			for _, tenant := range []string{"acme", "evil"} {
				_, err = w.AddTenant(t.Context(), tenants.Tenant{ID: tenant}, "open sesame")
				is.NoErr(err)
			}
			acme := w.as(t, "acme")
			var libraries []string
			for _, name := range []string{"One", "Two"} {
				e, err := w.Content.Create(acme, content.Entity{Kind: "library", Name: name})
				is.NoErr(err)
				_, err = w.Content.PutFile(acme, e.ID, entity.File{
					Path: "big",
				}, strings.NewReader(strings.Repeat(name, 1<<20)))
				is.NoErr(err)
				libraries = append(libraries, "library "+e.ID)
			}
			packed := w.export(t, "acme", "", libraries...)
			file := filepath.Join(t.TempDir(), "a.tgz")
			is.NoErr(os.WriteFile(file, packed, 0o600))
			third, err := w.Content.Create(acme, content.Entity{Kind: "library", Name: "Three"})
			is.NoErr(err)
			_, err = w.Content.PutFile(acme, third.ID, entity.File{Path: "small"}, strings.NewReader("x"))
			is.NoErr(err)
			before := w.dump(t, "acme")
			is.True(strings.Contains(before, "Three"))

			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "BUNDLES_TEST_URL="+url, "BUNDLES_TEST_FILE="+file)
			out, err := c.StdoutPipe()
			is.NoErr(err)
			is.NoErr(c.Start())
			lines := bufio.NewScanner(out)
			is.True(lines.Scan())
			is.Equal(lines.Text(), "in the middle")
			is.NoErr(c.Process.Kill())
			_ = c.Wait()

			is.Equal(w.dump(t, "acme"), before)
			_, err = w.Bundles.Restore(acme, bytes.NewReader(packed), bundles.ImportOptions{})
			is.NoErr(err)
			is.Equal(w.names(t, "acme", "library"), "One Two")
		})
	}
}
