package httpapi_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// withBundles adds the samples of bundles and archives. ARCHIVE stands for the bytes of an archive,
// STAGED for the id of one that is staged.
func withBundles(samples map[string]sample) map[string]sample {
	bundle := []string{"name string?", "slug string?", "description string?"}
	deploy := []string{"tenants strings?", "updateRule string?", "dryRun bool", "changes bool"}
	for name, s := range map[string]sample{
		"createBundle":      {body: `{"name": "New", "slug": "new"}`, fields: bundle},
		"putBundle":         {body: `{"description": "Other"}`, fields: bundle},
		"deleteBundle":      {last: "gone"},
		"createBundleEntry": {body: `{"type": "global"}`, fields: []string{"type string", "data object?"}},
		"putBundleEntry":    {body: `{"data": {"a": 1}}`, fields: []string{"data object?"}},
		"deleteBundleEntry": {},
		"exportBundle":      {},
		"deployBundle":      {body: `{"tenants": ["acme"]}`, fields: deploy},
		"importBundle":      {body: "ARCHIVE"},
		"exportEntries":     {body: `{"entries": [{"type": "global"}]}`, fields: []string{"name string?"}},
		"deployEntries": {
			body:   `{"tenants": ["acme"], "entries": [{"type": "global"}]}`,
			fields: append([]string{"name string?"}, deploy...),
		},
		"restoreArchive": {body: "ARCHIVE"},
		"restoreFile":    {body: `{"uploadId": "STAGED"}`},
	} {
		samples[name] = s
	}
	return samples
}

// stockBundles makes two bundles, of which one may be deleted and the other has an entry, and an
// archive of colors.
func stockBundles(t testing.TB, w *world, param map[string]string) {
	id := func(a answer) string { return read[struct{ ID string }](t, a).ID }
	w.must(t, "admin", "POST", "/api/bundles", `{"name": "Gone"}`)
	param["bundles"] = id(w.must(t, "admin", "POST", "/api/bundles", `{"name": "Kept"}`))
	param["bundle-drivers"] = "tagged"
	param["entries"] = id(w.must(
		t, "admin", "POST", "/api/bundles/kept/entries", `{"type": "user", "username": "mia"}`,
	))
	param["archive"] = colorArchive(t, map[string]string{"gone": "#ff0000", "red": "#ff0000", "sky": "blue"})
	param["staged"] = w.upload(t, "admin", param["archive"])
}

// colorArchive packs colors.
func colorArchive(t testing.TB, colors map[string]string) string {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	h := archive.Header{
		Tenant: "far",
		Bundle: archive.Bundle{Name: "Colors"},
		Counts: map[entity.Kind]int{"color": len(colors)},
	}
	w, err := archive.NewWriter(&b, h, archive.Limits{})
	is.NoErr(err)
	for key, color := range colors {
		is.NoErr(w.Row(entity.Row{Key: entity.Key{Kind: "color", ID: key}, JSON: []byte(`{"color": "` + color + `"}`)}))
	}
	is.NoErr(w.Close())
	return b.String()
}

// archive names an archive for later requests, and shows what is in it.
func (s *script) archive(t testing.TB, packed string) string {
	t.Helper()
	is := is.New(t)
	if s.given[packed] == "" {
		s.counts[2]++
		s.given[packed] = fmt.Sprintf("<ARCHIVE-%d>", s.counts[2])
	}
	var out strings.Builder
	out.WriteString(s.given[packed] + "\n")
	zip, err := gzip.NewReader(strings.NewReader(packed))
	is.NoErr(err)
	members := tar.NewReader(zip)
	for {
		h, err := members.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		is.NoErr(err)
		content, err := io.ReadAll(members)
		is.NoErr(err)
		fmt.Fprintf(&out, "%s\n  %s\n", h.Name, strings.ReplaceAll(strings.TrimSpace(string(content)), "\n", "\n  "))
	}
}

// TestSlowArchive: a sender who stands still in the middle of an archive keeps nobody from writing,
// and leaves nothing.
func TestSlowArchive(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := stocked(t, open)
		server := httptest.NewServer(s.http)
		defer server.Close()
		before := s.dump(t, "evil")
		for _, path := range []string{"/api/_import-bundle", "/api/_restore", "/api/_restore-from-file"} {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			is.NoErr(err)
			_, err = fmt.Fprintf(conn,
				"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
					"application/gzip\r\nContent-Length: 10000\r\n\r\n%s",
				path, s.token(t, "eve"), s.param["archive"])
			is.NoErr(err)
			time.Sleep(50 * time.Millisecond) // it is being read by now
			start := time.Now()
			s.must(t, "dana", "PUT", "/api/colors/red", `{"color": "#00ff00"}`)
			is.True(time.Since(start) < 10*time.Second) // not the 30 s until the sender is given up
			is.NoErr(conn.Close())
		}
		is.Equal(s.dump(t, "evil"), before)
	})
}

// TestArchiveContentType: what says that it is JSON or text is no archive; what says nothing, or
// anything else, may be one.
func TestArchiveContentType(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	packed := colorArchive(t, map[string]string{"red": "#ff0000"})
	for kind, status := range map[string]int{
		"application/json": 415, "Application/JSON; charset=utf-8": 415,
		"application/hal+json": 415, "text/plain": 415, "text/html; charset=utf-8": 415,
		"application/gzip": 200, "application/x-tar": 200, "application/octet-stream": 200,
		"application/x-www-form-urlencoded": 200, "": 200, "/": 400,
	} {
		for _, target := range []string{"/api/_import-bundle", "/api/_restore", "/api/_restore-from-file"} {
			want := status
			if status == 415 && !strings.HasPrefix(kind, "text/") && target == "/api/_restore-from-file" {
				want = 400 // there JSON is an uploadId, and this is no JSON
			}
			a := w.do(t, "admin", "POST", target, packed, "Content-Type: "+kind)
			if a.status != want || want == 415 && !strings.Contains(a.message(t), "application/gzip") {
				t.Errorf("%s as %s: %d, want %d", target, kind, a.status, want)
			}
		}
	}
	colors := read[[]any](t, w.must(t, "admin", "GET", "/api/colors-list", ""))
	is.Equal(len(colors), 1)
}

// TestArchiveSize: a form's and a body's archive are bounded alike.
func TestArchiveSize(t *testing.T) {
	is := is.New(t)
	s := stocked(t, dbtest.SQLite)
	size := int64(len(s.param["archive"]))
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.MaxArchive = size })
	body, kind := form(t, "a.tgz", s.param["archive"])
	w.must(t, "admin", "POST", "/api/_import-bundle", s.param["archive"])
	w.must(t, "admin", "POST", "/api/_import-bundle", body, "Content-Type: "+kind)
	body, kind = form(t, "a.tgz", s.param["archive"]+"x")
	for _, a := range []answer{
		w.do(t, "admin", "POST", "/api/_import-bundle", s.param["archive"]+"x"),
		w.do(t, "admin", "POST", "/api/_restore", body, "Content-Type: "+kind),
	} {
		is.Equal(a.status, 413)
		is.Equal(a.message(t), fmt.Sprintf("The archive must have at most %d bytes.", size))
	}
}

// TestExportRefused: what is known to fit into no archive is refused before anything of one is
// sent.
func TestExportRefused(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.ArchiveLimits.Members = 2 })
	w.must(t, "admin", "POST", "/api/bundles", `{"name": "B"}`)
	w.must(t, "admin", "POST", "/api/bundles/b/entries", `{"type": "user", "username": "mia"}`)
	for path, body := range map[string]string{
		"/api/bundles/b/_export": "", "/api/_bundle": `{"entries": [{"type": "user", "username": "mia"}]}`,
		"/api/bundles/b/_deploy": `{"tenants": ["acme"]}`,
	} {
		a := w.do(t, "admin", "POST", path, body)
		is.Equal(a.status, 400)
		is.Equal(
			a.message(t),
			"The entries do not fit into one archive: make several bundles of them. An archive must have at most "+
				"2 members, and this one has 3: the operator sets the limit by TENANTCONTENT_MAX_ARCHIVE_MEMBERS.",
		)
		is.Equal(a.header.Get("Content-Disposition"), "")
	}
	for i := range 300 { // an archive of them is longer than what is held back
		w.must(t, "admin", "PUT", fmt.Sprintf("/api/colors/k%d", i), `{"color": "#123456"}`)
	}
	a := w.do(t, "admin", "POST", "/api/_bundle", `{"entries": [{"type": "global"}]}`)
	is.Equal(a.status, 400)
	is.True(strings.HasPrefix(a.message(t), "An archive must have at most 2 members, and this one has 302"))
}

// TestClientGone: who hangs up before the answer leaves one line at info, with the status 499, and
// none of an error.
func TestClientGone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		token := read[struct{ Token string }](t, w.must(t, "", "POST", "/api/login/local", login)).Token
		for _, target := range []string{"GET /api/colors", "POST /api/bundles", "DELETE /api/bundles/b"} {
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, strings.NewReader(`{"name": "B"}`)).WithContext(ctx)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/json")
			func() {
				defer func() { is.Equal(recover(), http.ErrAbortHandler) }()
				w.http.ServeHTTP(httptest.NewRecorder(), r)
			}()
		}
		log := w.log.String()
		is.Equal(strings.Count(log, `level=INFO msg="client gone"`), 3)
		is.Equal(strings.Count(log, "status=499"), 3)
		is.True(!strings.Contains(log, "level=ERROR") && !strings.Contains(log, "level=WARN"))
	})
}

// TestExportCut: what turns out to fit into no archive when a part of it has been sent is cut, and
// the log says why under the request's id.
func TestExportCut(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) { c.MaxArchive = 150_000 })
	noise := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	w.must(t, "admin", "POST", "/api/bundles", `{"name": "B"}`)
	a := w.must(t, "admin", "POST", "/api/datasets", fmt.Sprintf(`{"name": "Noise", "data": {"noise": "%x"}}`, noise))
	w.must(
		t, "admin", "POST", "/api/bundles/b/entries",
		fmt.Sprintf(`{"type": "dataset", "datasetId": %q}`, read[struct{ ID string }](t, a).ID),
	)
	server := httptest.NewServer(w.http)
	defer server.Close()
	res, body, err := w.fetch(t, server, "POST", "/api/bundles/b/_export", "X-Request-Id: the-one")
	is.Equal(res.StatusCode, 200)
	is.True(errors.Is(err, io.ErrUnexpectedEOF))
	is.True(len(body) > 0)
	is.Equal(res.Header.Get("X-Request-Id"), "the-one")
	log := w.log.String()
	is.True(strings.Contains(log, `msg="answer cut" request=the-one`))
	is.True(strings.Contains(log, "An archive must have at most 150000 bytes."))
}
