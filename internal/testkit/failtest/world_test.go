package failtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/tenants"
)

const (
	password = "correct horse battery"
	callers  = 16
)

// world is an App on PostgreSQL served over HTTP, with the tenant acme, its superuser admin, who
// has many sessions, and the colors k-0 to k-15.
type world struct {
	db     *bun.DB
	app    *tenantcontent.App
	url    string
	client *http.Client
}

// plainURL returns the URL of an empty schema without row-level security, as on most servers.
func plainURL(t *testing.T) *url.URL {
	t.Helper()
	u, err := url.Parse(dbtest.PostgresURL(t))
	is.New(t).NoErr(err)
	q := u.Query()
	q.Del("row_level_security")
	u.RawQuery = q.Encode()
	return u
}

// with sets a parameter of a database URL.
func with(u *url.URL, name, value string) *url.URL {
	q := u.Query()
	q.Set(name, value)
	changed := *u
	changed.RawQuery = q.Encode()
	return &changed
}

// newWorld creates the tables through one URL and serves through another.
func newWorld(t *testing.T, direct, through *url.URL) *world {
	t.Helper()
	db, err := engines.Open(through.String())
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	return newWorldOn(t, direct, db)
}

// newWorldOn creates the tables through a URL and serves from a database.
func newWorldOn(t *testing.T, direct *url.URL, db *bun.DB) *world {
	t.Helper()
	is, ctx, key := is.New(t), t.Context(), tenantcontent.NewSecretKey()
	admin, err := engines.Open(direct.String())
	is.NoErr(err)
	defer func() { _ = admin.Close() }()
	is.NoErr(tenantcontent.Migrate(ctx, admin))
	first, err := tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        admin,
		SecretKey: key,
	})
	is.NoErr(err)
	_, err = first.AddTenant(ctx, tenants.Tenant{ID: "acme"}, password)
	is.NoErr(err)
	for i := range callers {
		_, err := first.Colors.Put(as(ctx), fmt.Sprintf("k-%d", i), fmt.Sprintf("#%06x", i))
		is.NoErr(err)
	}

	w := &world{db: db, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * callers}}}
	w.app, err = tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        w.db,
		SecretKey: key,
		Log:       slog.New(slog.DiscardHandler),
	})
	is.NoErr(err)
	server := httptest.NewServer(w.app)
	t.Cleanup(server.Close)
	t.Cleanup(w.client.CloseIdleConnections)
	w.url = server.URL
	_, err = admin.ExecContext(ctx, `INSERT INTO tc_sessions (tenant_id, id, username, created_at, expires_at)
		SELECT 'acme', rtrim(translate(encode(sha256(('s' || i)::bytea), 'base64'), '+/', '-_'), '='), 'admin', now(), now() + interval '1 hour'
		FROM generate_series(0, 9999) i`)
	is.NoErr(err)
	return w
}

// token returns the credential of one of many sessions, so that most requests look it up in the
// database.
func token() string { return fmt.Sprintf("tcs.acme.s%d", rand.IntN(10000)) }

// idle waits until no request holds a connection.
func (w *world) idle(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); w.db.Stats().InUse > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are in use, and nobody calls", w.db.Stats().InUse)
		}
	}
}

func as(ctx context.Context) context.Context {
	return actor.With(ctx, actor.Actor{Tenant: "acme", User: "admin", Superuser: true})
}

// do sends a request and returns status and body. An answer that is cut in the middle is an error.
func (w *world) do(ctx context.Context, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+token())
	res, err := w.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// color reads or writes one color and reports whether that succeeded. Any answer other than the
// color or a 503 of the service is an error.
func (w *world) color(ctx context.Context, method, key string) (ok bool, err error) {
	body := ""
	if method == http.MethodPut {
		body = `{"color":"#123456"}`
	}
	status, text, err := w.do(ctx, method, "/api/colors/"+key, body)
	if err != nil {
		return false, err
	}
	switch status {
	case http.StatusOK:
		var got struct{ Key, Tenant string }
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Key != key || got.Tenant != "acme" {
			return false, fmt.Errorf("asked for %s, got %s", key, text)
		}
		return true, nil
	case http.StatusServiceUnavailable:
		return false, properly503(text)
	}
	return false, fmt.Errorf("%s %s: %d %s", method, key, status, text)
}

// properly503 checks the error shape.
func properly503(text string) error {
	var got struct {
		StatusCode     int
		Error, Message string
	}
	err := json.Unmarshal([]byte(text), &got)
	away := got.Message == "The database is not available at the moment. Try again." ||
		got.Message == "The database did not answer: the change may or may not have been made. Look before you "+
			"try again."
	if err != nil || got.StatusCode != 503 || got.Error != "Service Unavailable" || !away {
		return fmt.Errorf("not the error shape: %s", text)
	}
	return nil
}
