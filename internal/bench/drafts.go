package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/entity"
)

// The app whose draft is measured.
const (
	bigFiles = 2000
	bigFile  = 200 << 20 / bigFiles // bytes
	bigEdits = 10                   // how many files a draft changes
)

// big is an app with many files, and a folder that has the same ones.
type big struct {
	app    string // id
	folder string
}

// bigApp makes the app once.
func (w *world) bigApp() (*big, error) {
	w.bigOnce.Do(func() { w.big, w.bigErr = w.newBig() })
	return w.big, w.bigErr
}

func (w *world) newBig() (*big, error) {
	app, err := w.app.Apps.Create(w.admin, apps.App{
		Type:     apps.Report,
		Name:     "Big",
		Defn:     []byte(`{}`),
		Settings: []byte(`{}`),
	})
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return nil, err
	}
	w.ends = append(w.ends, func() error { return os.RemoveAll(folder) })
	random := rand.NewChaCha8([32]byte{})
	for i := range bigFiles {
		content := make([]byte, bigFile)
		_, _ = random.Read(content)
		path := fmt.Sprintf("assets/%02d/chunk-%04d.js", i%40, i)
		if _, err := w.app.Apps.PutFile(w.admin, app.ID, entity.File{
			Path: path,
		}, bytes.NewReader(content)); err != nil {
			return nil, err
		}
		name := filepath.Join(folder, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return nil, err
		}
	}
	return &big{app.ID, folder}, w.analyze(w.admin)
}

// times measures something a few times, after what prepares it, and returns the median in seconds.
func times(prepare, do func() error) (float64, error) {
	var all []float64
	for range rounds {
		if err := prepare(); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(begin).Seconds())
	}
	return median(all), nil
}

// bigCaller returns the app and a connection of the superuser.
func (w *world) bigCaller() (*big, *caller, error) {
	b, err := w.bigApp()
	if err != nil {
		return nil, nil, err
	}
	c, err := dial(w.ours, w.token)
	return b, c, err
}

func inOneSecond(s float64, err error) (result, error) {
	return result{ours: seconds(s), must: "< 1s", met: s < 1}, err
}

// draftBig begins the draft of an app with 2,000 files over HTTP.
func draftBig(_ context.Context, w *world) (result, error) {
	b, c, err := w.bigCaller()
	if err != nil {
		return result{}, err
	}
	defer func() { _ = c.conn.Close() }()
	drafted := false
	discard := func() error {
		if !drafted {
			return nil
		}
		_, err := c.do("DELETE", "/api/apps/"+b.app+"/draft", "")
		return err
	}
	s, err := times(discard, func() error {
		_, err := c.do("POST", "/api/apps/"+b.app+"/_edit", "")
		drafted = err == nil
		return err
	})
	if err == nil {
		err = discard()
	}
	return inOneSecond(s, err)
}

// commitBig publishes a draft of the app that changes a few files, over HTTP.
func commitBig(ctx context.Context, w *world) (result, error) {
	b, c, err := w.bigCaller()
	if err != nil {
		return result{}, err
	}
	defer func() { _ = c.conn.Close() }()
	round := 0
	change := func() error {
		d, err := w.app.Apps.Edit(w.admin, b.app, true)
		round++
		for i := 0; i < bigEdits && err == nil; i++ {
			_, err = w.app.Apps.PutFile(
				w.admin, d.ID, entity.File{
					Path: fmt.Sprintf("assets/%02d/chunk-%04d.js", i%40, i),
				}, bytes.NewReader(fmt.Appendf(nil, "round %d of %d", round, i)),
			)
		}
		if err == nil {
			_, err = c.do("POST", "/api/apps/"+b.app+"/_edit?force=true", "") // the lock belongs to a session
		}
		return err
	}
	s, err := times(change, func() error {
		_, err := c.do("POST", "/api/apps/"+b.app+"/draft/_commit", "")
		return err
	})
	return inOneSecond(s, err)
}

// pushUnchanged runs the command app push for a folder that its app is like, and counts its
// requests.
func pushUnchanged(ctx context.Context, w *world) (result, error) {
	b, err := w.bigApp()
	if err != nil {
		return result{}, err
	}
	program := filepath.Join(b.folder, "..", filepath.Base(b.folder)+"-program")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/tenantcontent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return result{}, fmt.Errorf("%w: %s", err, out)
	}
	defer func() { _ = os.Remove(program) }()
	var requests atomic.Int64
	address, err := w.serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.app.ServeHTTP(rw, r)
	}))
	if err != nil {
		return result{}, err
	}
	push := func() error {
		cmd := exec.CommandContext(ctx, program, "app", "push", b.folder, "--app="+b.app)
		cmd.Env = append(os.Environ(), "TENANTCONTENT_SERVER=http://"+address, "TENANTCONTENT_TOKEN="+w.token)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := push(); err != nil { // other measurements have changed a few files
		return result{}, err
	}
	requests.Store(0)
	s, err := times(func() error { return nil }, push)
	n := float64(requests.Load()) / rounds
	return result{
		ours: fmt.Sprintf("%s, requests: %g", seconds(s), n),
		must: "< 1s, 1 request",
		met:  s < 1 && n == 1,
	}, err
}

// onceBig is embedded in a world.
type onceBig struct {
	bigOnce sync.Once
	big     *big
	bigErr  error
}
