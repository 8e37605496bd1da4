package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// The files of the app that is measured: one that a page loads, and one that is downloaded.
const (
	viewedSize     = 4 << 10
	downloadedSize = 10 << 20
)

// viewedApp makes an app with both files, and returns its path and that of the file which its page
// loads.
func (w *world) viewedApp() (app, file string, err error) {
	made, err := w.post("/api/apps", "application/json", []byte(`{"type": "report", "name": "Viewed"}`))
	if err != nil {
		return "", "", err
	}
	app = fmt.Sprint("/api/apps/", made["id"])
	for name, content := range map[string]string{
		"index.html": "<!doctype html>",
		"a.js":       strings.Repeat("export {}\n", viewedSize/10+1)[:viewedSize],
		"large.bin":  strings.Repeat("0123456789abcdef", downloadedSize/16),
	} {
		res, err := w.sendAs("application/octet-stream", http.MethodPut, app+"/contents/"+name, content)
		if err != nil {
			return "", "", err
		}
		_ = res.Body.Close()
	}
	res, err := w.send(http.MethodGet, app+"/view", "")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(res.Body)
	base := regexp.MustCompile(`<base href="[^"]*(/api/apps/[^"]*)"`).FindSubmatch(page)
	if err != nil || base == nil {
		return "", "", errors.Join(err, errors.New("the page has no base: "+res.Status))
	}
	return app, string(base[1]) + "a.js", nil
}

// viewFile loads a file of 4 KiB for the page of an app, with the page's token, from 16 callers.
func viewFile(_ context.Context, w *world) (result, error) {
	return w.viewed(0.5, false)
}

// viewFileUnchanged loads the file with the tag that the browser has already.
func viewFileUnchanged(_ context.Context, w *world) (result, error) {
	return w.viewed(0.8, true)
}

func (w *world) viewed(must float64, unchanged bool) (result, error) {
	_, path, err := w.viewedApp()
	if err != nil {
		return result{}, err
	}
	res, err := w.send(http.MethodGet, path, "")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	if err != nil || len(content) != viewedSize {
		return result{}, errors.Join(err, fmt.Errorf("a file of %d bytes: %s", len(content), res.Status))
	}
	for _, own := range []string{"Content-Length", "Date", "Last-Modified", "Accept-Ranges"} {
		res.Header.Del(own)
	}
	bareFile.Store(&memoryFile{header: res.Header, content: content})
	more := ""
	if unchanged {
		more = "If-None-Match: " + res.Header.Get("Etag") + "\r\n"
	}
	return w.repeated(callers, must, func(c *caller, _, _ int) error {
		c.auth, c.more = "", more
		n, err := c.do(http.MethodGet, path, "")
		if err == nil && (n == 0) != unchanged {
			err = fmt.Errorf("an answer of %d bytes", n)
		}
		return err
	})
}

// memoryFile is a file that the bare handler has in memory, with the headers that the service
// sends.
type memoryFile struct {
	header  http.Header
	content []byte
}

var bareFile atomic.Pointer[memoryFile]

// bareView serves the file that is in memory.
func bareView(w http.ResponseWriter, r *http.Request) {
	f := bareFile.Load()
	for name, values := range f.header {
		w.Header()[name] = values
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}

// downloadFile downloads a file of 10 MiB of an app, one caller.
func downloadFile(_ context.Context, w *world) (result, error) {
	app, _, err := w.viewedApp()
	if err != nil {
		return result{}, err
	}
	return w.repeated(1, 0.7, func(c *caller, _, _ int) error {
		n, err := c.do(http.MethodGet, app+"/contents/large.bin", "")
		if err == nil && n != downloadedSize {
			err = fmt.Errorf("a file of %d bytes", n)
		}
		return err
	})
}

// bareDownload streams the chunks of a file of an app.
func bareDownload(ctx context.Context, db *sql.DB, store blobs.Store, path string, w http.ResponseWriter) error {
	id, name, _ := strings.Cut(strings.TrimPrefix(path, "/api/apps/"), "/contents/")
	var content string
	err := db.QueryRowContext(ctx,
		`SELECT f.content_id FROM tc_apps a JOIN tc_library_files f ON f.tenant_id = a.tenant_id
			AND f.library_id = a.library_id
		WHERE a.tenant_id = $1 AND a.id = $2 AND f.path = $3`, "default", id, name).Scan(&content)
	if err != nil {
		return err
	}
	r, err := store.Open(ctx, "default", content)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", fmt.Sprint(r.Info().Size))
	_, err = io.Copy(w, r)
	return err
}
