package failtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestServerIsKilledDuringARestore: a restore is answered, wherever in it the server is killed.
// Afterwards the tenant has the rows and files of either before or the archive.
func TestServerIsKilledDuringARestore(t *testing.T) {
	is, cluster, u := is.New(t), dbtest.Server(t), plainURL(t)
	whole, err := engines.Open(u.String())
	is.NoErr(err)
	t.Cleanup(func() { _ = whole.Close() })
	var before atomic.Pointer[func(statement string)]
	w := newWorldOn(t, u, dbtest.Watched(t, whole, func(statement string) {
		if f := before.Load(); f != nil {
			(*f)(statement)
		}
	}))

	// The archive has 300 reports and a library whose files have more bytes than net/http reads of
	// a body automatically.
	noise := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	ctx := as(t.Context())
	var entries []string
	first, err := w.app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Old 0"})
	is.NoErr(err)
	_, err = w.db.ExecContext(ctx,
		`INSERT INTO tc_entities SELECT (jsonb_populate_record(e, jsonb_build_object('id', gen_random_uuid(),
		'name', 'Old ' || i, 'label', 'old ' || i, 'search', 'old ' || i, 'slug', 'old-' || i))).* FROM tc_entities e, generate_series(1, 299) i WHERE id = ?`,
		first.ID)
	is.NoErr(err)
	var reports []string
	is.NoErr(w.db.NewRaw(`SELECT id FROM tc_entities WHERE kind = 'report' ORDER BY id`).Scan(ctx, &reports))
	for _, id := range reports {
		entries = append(entries, fmt.Sprintf(`{"type":"report","reportId":%q}`, id))
	}
	library, err := w.app.Content.Create(ctx, content.Entity{Kind: "library", Name: "Old"})
	is.NoErr(err)
	entries = append(entries, fmt.Sprintf(`{"type":"library","libraryId":%q}`, library.ID))
	for _, path := range []string{"a", "b"} {
		_, err = w.app.Content.PutFile(ctx, library.ID, entity.File{
			Path: path,
		}, strings.NewReader(path+string(noise)))
		is.NoErr(err)
	}
	status, archive, err := w.do(ctx, "POST", "/api/_bundle", `{"entries":[`+strings.Join(entries, ",")+`]}`)
	is.NoErr(err)
	is.Equal(status, http.StatusOK)
	archived := w.content(t)

	// Since then some entities were changed, deleted and added.
	_, err = w.db.ExecContext(ctx, `DELETE FROM tc_entities WHERE kind = 'report' AND name LIKE '%3'`)
	is.NoErr(err)
	_, err = w.db.ExecContext(
		ctx, `UPDATE tc_entities SET name = name || ' changed' WHERE kind = 'report' AND name LIKE '%7'`,
	)
	is.NoErr(err)
	_, err = w.app.Content.Create(ctx, content.Entity{Kind: "report", Name: "New"})
	is.NoErr(err)
	_, err = w.app.Content.PutFile(ctx, library.ID, entity.File{Path: "b"}, strings.NewReader("changed"))
	is.NoErr(err)
	_, err = w.app.Content.PutFile(ctx, library.ID, entity.File{Path: "c"}, strings.NewReader("new"))
	is.NoErr(err)
	changed := w.content(t)
	is.True(changed != archived)

	status, text, err := w.do(ctx, "POST", "/api/uploads?filename=a.tgz", archive)
	is.NoErr(err)
	is.Equal(status, http.StatusCreated)
	var upload struct{ ID string }
	is.NoErr(json.Unmarshal([]byte(text), &upload))
	const body, file = "/api/_restore", "/api/_restore-from-file"
	staged := file + "?uploadId=" + upload.ID

	for _, c := range []struct {
		name, target string
		at           string // part of the statement before which the server is killed; "": while the body is sent
		nth          int
	}{
		{"credential", body, "tc_sessions", 1},
		{"body", file, "", 0},
		{"upload", staged, "FROM tc_blob_chunks", 2},
		{"lock", staged, "FOR NO KEY UPDATE", 1},
		{"backup", body, "INSERT INTO tc_blob_chunks", 1},
		{"rows removed", file, "DELETE FROM tc_entities", 1},
		{"rows", body, "tc_entities (", 2},
		{"files", staged, "INSERT INTO tc_library_files", 2},
		{"commit", body, "COMMIT", 1},
		{"never", body, "none", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			statements, killed := 0, false
			kill := func() { killed = true; cluster.Kill() }
			f := func(statement string) {
				if c.at != "" && strings.Contains(statement, c.at) {
					if statements++; statements == c.nth {
						kill()
					}
				}
			}
			before.Store(&f)
			sent := io.Reader(strings.NewReader(archive))
			switch {
			case strings.Contains(c.target, "uploadId"):
				sent = http.NoBody
			case c.at == "":
				sent = io.MultiReader(
					strings.NewReader(archive[:len(archive)/2]), &once{do: kill},
					strings.NewReader(archive[len(archive)/2:]),
				)
			}
			res, answer := w.sendWhole(t, c.target, sent)
			before.Store(nil)
			is.Equal(killed, c.name != "never")
			is.NoErr(cluster.Restart(context.WithoutCancel(t.Context())))
			t.Log(res.StatusCode, answer[:min(len(answer), 200)])

			now := w.content(t)
			if res.StatusCode == http.StatusOK {
				is.Equal(now, archived)
				return
			}
			is.Equal(res.StatusCode, http.StatusServiceUnavailable)
			is.NoErr(properly503(answer))
			unknown := strings.Contains(answer, "may or may not have been made")
			is.Equal(res.Header.Get("Retry-After") == "", unknown)
			is.True(now == changed || unknown && now == archived)
		})
	}
	w.idle(t)
}

// sendWhole sends a whole request before it reads the answer, which must be complete.
func (w *world) sendWhole(t *testing.T, target string, body io.Reader) (res *http.Response, answer string) {
	t.Helper()
	is := is.New(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+target, body)
	is.NoErr(err)
	req.Header.Set("Authorization", "Bearer "+token())
	if body != http.NoBody {
		req.Header.Set("Content-Type", "application/gzip")
	}
	conn, err := net.Dial("tcp", req.URL.Host)
	is.NoErr(err)
	defer func() { _ = conn.Close() }()
	is.NoErr(conn.(*net.TCPConn).SetWriteBuffer(64 << 10))
	is.NoErr(req.Write(conn)) // all of it was received
	res, err = http.ReadResponse(bufio.NewReader(conn), req)
	is.NoErr(err)
	text, err := io.ReadAll(res.Body)
	is.NoErr(err)
	is.NoErr(res.Body.Close())
	return res, string(text)
}

// once is an empty reader that calls do when it is read.
type once struct{ do func() }

func (o *once) Read([]byte) (int, error) {
	o.do()
	return 0, io.EOF
}

// content returns, over a separate connection, what the tenant has of the archive's content.
func (w *world) content(t *testing.T) (all string) {
	t.Helper()
	is := is.New(t)
	is.NoErr(w.db.QueryRowContext(t.Context(), `SELECT
		(SELECT string_agg(id || ' ' || name, ',' ORDER BY id) FROM tc_entities WHERE tenant_id = 'acme') || ';' ||
		(SELECT string_agg(f.path || ' ' || md5(b.bytes), ',' ORDER BY f.path, b.number)
			FROM tc_library_files f JOIN tc_blob_chunks b ON b.tenant_id = f.tenant_id AND b.blob_id = f.content_id WHERE f.tenant_id = 'acme')`).Scan(&all))
	return all
}
