package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// largeBundle makes a bundle with as many entries as one may have, and returns the id of the first
// of them.
func largeBundle(t testing.TB, w *world, name string) string {
	t.Helper()
	is := is.New(t)
	id := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/bundles", `{"name": "`+name+`"}`)).ID
	prefix := id[:len(id)-12]
	is.NoErr(bunx.Write(t.Context(), w.db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx,
			`INSERT INTO tc_bundle_entries (tenant_id, id, bundle_id, type, entity_id, data, created_at, updated_at)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			SELECT 'acme', $2 || (100000000000 + i + $3), $4, 'gone', 'e' || i, '{}', $5, $5 FROM n`,
			bundles.MaxEntries, prefix, 1000000*len(name), id, bunx.At(time.Now()))
		return err
	}))
	return fmt.Sprintf("%s%d", prefix, 100000000000+1+1000000*len(name))
}

// TestLargeBundlesSize: a page of bundles ends before its limit when their entries fill it, with
// one bundle at least, and is two statements; nothing that is done with one entry, nor its tag,
// reads the others.
func TestLargeBundlesSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		var count *dbtest.Counter
		w := newWorld(t, func(t testing.TB) (db *bun.DB) {
			db, count = dbtest.Counted(t, open)
			return db
		})
		entry := ""
		for _, name := range []string{"a", "bb", "ccc"} { // 3.7 MiB each
			entry = largeBundle(t, w, name)
		}
		type large struct {
			Total    int
			Links    map[string]struct{ Href string } `json:"_links"`
			Embedded struct {
				Bundles []struct {
					Name    string
					Entries []struct{ ID, Type string }
				} `json:"inf:bundle"`
			} `json:"_embedded"`
		}
		var names []string
		for next, pages := "/api/bundles", 0; next != ""; pages++ {
			count.Take()
			p := read[large](t, w.must(t, "admin", "GET", next, ""))
			is.Equal(len(slices.DeleteFunc(count.Take(), func(s string) bool {
				return !strings.Contains(s, "tc_bundle")
			})), 2)
			is.Equal(p.Total, 3)
			is.Equal(len(p.Embedded.Bundles), []int{2, 1}[pages])
			for _, b := range p.Embedded.Bundles {
				names = append(names, b.Name)
				is.Equal(len(b.Entries), bundles.MaxEntries)
			}
			next = strings.TrimPrefix(p.Links["next"].Href, baseURL)
		}
		is.Equal(names, []string{"a", "bb", "ccc"})

		got := w.must(t, "admin", "GET", "/api/bundles/ccc", "")
		tag := got.header.Get("ETag")
		is.True(tag != "")
		is.Equal(w.do(t, "admin", "GET", "/api/bundles/ccc", "", "If-None-Match: "+tag).status, http.StatusNotModified)
		for _, call := range [][3]string{
			{"GET", "/api/bundles/ccc/entries/" + entry, ""},
			{"PUT", "/api/bundles/ccc/entries/" + entry, `{"data": {"a": 1}}`},
			{"DELETE", "/api/bundles/ccc/entries/" + entry, ""},
			{"POST", "/api/bundles/ccc/entries", `{"type": "user", "username": "mia"}`},
		} {
			count.Take()
			w.must(t, "admin", call[0], call[1], call[2])
			for _, statement := range count.Statements() {
				one := strings.Contains(statement.Text, "AND id = ") || strings.HasPrefix(statement.Text, "INSERT") ||
					strings.Contains(statement.Text, "WHERE tenant_id = $3 AND id = $4")
				if strings.Contains(statement.Text, "tc_bundle_entries") && !one {
					t.Errorf("%s %s: %s", call[0], call[1], statement.Text)
				}
			}
			changed := w.must(t, "admin", "GET", "/api/bundles/ccc", "", "If-None-Match: "+tag)
			is.Equal(changed.status == http.StatusNotModified, call[0] == "GET")
			if call[0] != "GET" {
				tag = changed.header.Get("ETag")
			}
		}
	})
}

// TestLargeBundleMemory: writing a bundle takes far less memory than its answer has bytes.
func TestLargeBundleMemory(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	largeBundle(t, w, "a")
	r := w.request(t, "admin", "GET", "/api/bundles/a", "")
	out := &meteredWriter{ResponseRecorder: httptest.NewRecorder()}
	w.http.ServeHTTP(out, r)
	is.Equal(out.Code, http.StatusOK)
	is.True(out.bytes > 4<<20)
	is.True(out.largest <= 128<<10) // its buffer
	if out.heap > int64(out.bytes)/4 {
		t.Errorf("%d more bytes are in memory while %d are sent", out.heap, out.bytes)
	}
}

// meteredWriter counts what is written, and what is in memory meanwhile.
type meteredWriter struct {
	*httptest.ResponseRecorder
	bytes, largest int
	before, heap   int64
}

// Write implements io.Writer.
func (m *meteredWriter) Write(b []byte) (int, error) {
	if m.bytes+len(b)>>20 != m.bytes>>20 {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		if m.before == 0 {
			m.before = int64(now.HeapAlloc)
		}
		m.heap = max(m.heap, int64(now.HeapAlloc)-m.before)
	}
	m.bytes += len(b)
	m.largest = max(m.largest, len(b))
	return len(b), nil
}
