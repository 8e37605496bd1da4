package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/principals"
)

// pocketBase is the program that lists and rows are compared with, as `go install` builds it.
const pocketBase = "github.com/pocketbase/pocketbase/examples/base@v0.39.0"

// peerRowsCount is how many rows each side has.
const peerRowsCount = 10_000

// peerCalls are what both sides are asked, by 16 callers over HTTP with the token of an ordinary
// user: ours and PocketBase's request, and how often ours must be as fast on SQLite and on
// PostgreSQL.
var peerCalls = []struct {
	name             string
	ours, theirs     func(c *caller, who, i int) error
	sqlite, postgres float64
}{
	{"single read", get(func(n int) string { return fmt.Sprintf("/api/colors/color-%06d", n) }),
		get(func(n int) string { return fmt.Sprintf("/api/collections/colors/records/c%014d", n) }), 5, 3},
	{"page of 20 with total", get(func(int) string { return "/api/colors?limit=20" }),
		get(func(int) string { return "/api/collections/colors/records?perPage=20&sort=key" }), 3, 2},
	{"page at row 9,000", get(func(int) string { return "/api/colors?limit=20&start=9000" }),
		get(func(int) string { return "/api/collections/colors/records?perPage=20&page=451&sort=key" }), 0, 0},
	{"insert", func(c *caller, who, _ int) error {
		_, err := c.do("PUT", fmt.Sprintf("/api/colors/new-%d-%d", who, inserted.Add(1)), `{"color":"#123abc"}`)
		return err
	}, func(c *caller, who, _ int) error {
		_, err := c.do(
			"POST", "/api/collections/colors/records",
			fmt.Sprintf(`{"key":"new-%d-%d","color":"#123abc"}`, who, inserted.Add(1)),
		)
		return err
	}, 2, 2},
	{"update", func(c *caller, who, i int) error {
		_, err := c.do(
			"PUT", fmt.Sprintf("/api/colors/color-%06d", row(who, i)),
			fmt.Sprintf(`{"color":"#%06x"}`, i%0xffffff),
		)
		return err
	}, func(c *caller, who, i int) error {
		_, err := c.do(
			"PATCH", fmt.Sprintf("/api/collections/colors/records/c%014d", row(who, i)),
			fmt.Sprintf(`{"color":"#%06x"}`, i%0xffffff),
		)
		return err
	}, 2, 2},
}

// inserted numbers the rows that both sides add.
var inserted atomic.Int64

// row is the number of the row that a caller asks for.
func row(who, i int) int { return (who*631 + i*7) % peerRowsCount }

// get decodes the answer of a target about a row.
func get(target func(row int) string) func(c *caller, who, i int) error {
	return func(c *caller, who, i int) error {
		n, err := c.do("GET", target(row(who, i)), "")
		if err == nil && n < 50 {
			err = fmt.Errorf("an answer of %d bytes is none", n)
		}
		return err
	}
}

// peerRows compares the service with PocketBase.
func peerRows(ctx context.Context, engine string, matches *regexp.Regexp) (all []result, err error) {
	if !matches.MatchString("peers") {
		return nil, nil
	}
	w, err := newWorld(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	token, err := w.designer()
	if err != nil {
		return nil, err
	}
	theirs, theirToken, err := w.startPocketBase(ctx)
	if err != nil {
		return nil, fmt.Errorf("PocketBase: %w", err)
	}
	for _, call := range peerCalls {
		fmt.Fprintf(os.Stderr, "peers: %s on %s …\n", call.name, engine)
		ours, bare, ratio, err := inTurn(
			func() (float64, error) { return throughput(w.ours, token, callers, time.Second, call.ours) },
			func() (float64, error) { return throughput(theirs, theirToken, callers, time.Second, call.theirs) },
		)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", call.name, err)
		}
		r := result{
			name:   "peers: " + call.name,
			engine: engine,
			ours:   perSecond(ours),
			bare:   perSecond(bare) + " PocketBase",
			ratio:  ratio,
		}
		if must := map[string]float64{"sqlite": call.sqlite, "postgres": call.postgres}[engine]; must > 0 {
			r.must, r.met = fmt.Sprintf("≥ %.2f", must), ratio >= must
		}
		all = append(all, r)
	}
	return all, nil
}

// designer makes a user who may change colors and nothing else, and returns the token of a session.
func (w *world) designer() (string, error) {
	if _, err := w.app.Principals.CreateUser(
		w.admin, principals.User{Username: "peer", Enabled: true}, password,
	); err != nil {
		return "", err
	}
	team, err := w.app.Principals.CreateTeam(w.admin, principals.Team{Name: "Peers"})
	if err != nil {
		return "", err
	}
	if _, err := w.app.Principals.PutMember(w.admin, team.ID, "peer", actor.Designer); err != nil {
		return "", err
	}
	login, err := w.app.Sessions.Login(w.admin, principals.Credentials{
		Tenant: "default", Domain: "local", Username: "peer", Password: password,
	})
	return login.Token, err
}

// startPocketBase builds PocketBase, unless an earlier run has, starts it with a collection of
// colors that any user may read and change, and returns its address and the token of an ordinary
// user.
func (w *world) startPocketBase(ctx context.Context) (address, token string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", err
	}
	bin := filepath.Join(cache, "tenantcontent-bench", filepath.Base(pocketBase))
	program := filepath.Join(bin, "base")
	if _, err := os.Stat(program); err != nil {
		fmt.Fprintln(os.Stderr, "installing PocketBase, which takes some minutes the first time …")
		install := exec.CommandContext(ctx, "go", "install", pocketBase)
		install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=", "CGO_ENABLED=0")
		if out, err := install.CombinedOutput(); err != nil {
			return "", "", fmt.Errorf("go install: %w\n%s", err, out)
		}
	}
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return "", "", err
	}
	w.ends = append(w.ends, func() error { return os.RemoveAll(dir) })
	const email = "admin@example.com"
	data := filepath.Join(dir, "data") // it writes beside it, too
	if out, err := exec.CommandContext(
		ctx, program, "superuser", "upsert", email, password, "--dir", data,
	).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("superuser: %w\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	address = l.Addr().String()
	_ = l.Close()
	server := exec.CommandContext(ctx, program, "serve", "--http", address, "--dir", data)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return "", "", err
	}
	w.ends = append(w.ends, func() error { _ = server.Process.Kill(); _ = server.Wait(); return nil })
	for tries := 0; ; tries++ {
		if _, err = sendJSON(address, "", "GET", "/api/health", nil); err == nil {
			break
		}
		if tries == 300 {
			return "", "", err
		}
		time.Sleep(100 * time.Millisecond)
	}
	token, err = fillPocketBase(address, email)
	return address, token, err
}

// fillPocketBase makes the collection, its rows and the user.
func fillPocketBase(address, email string) (string, error) {
	admin, err := sendJSON(
		address, "", "POST", "/api/collections/_superusers/auth-with-password",
		map[string]any{"identity": email, "password": password},
	)
	if err != nil {
		return "", err
	}
	root, _ := admin["token"].(string)
	anyUser := `@request.auth.id != ""`
	_, err = sendJSON(address, root, "POST", "/api/collections", map[string]any{
		"name": "colors", "type": "base", "listRule": anyUser,
		"viewRule": anyUser, "createRule": anyUser, "updateRule": anyUser,
		"fields": []map[string]any{
			{"name": "key", "type": "text", "required": true},
			{"name": "color", "type": "text"}, {"name": "source", "type": "text"},
			{"name": "created", "type": "autodate", "onCreate": true},
			{"name": "updated", "type": "autodate", "onCreate": true, "onUpdate": true},
		},
		"indexes": []string{"CREATE UNIQUE INDEX colors_key ON colors (key)"},
	})
	if err != nil {
		return "", err
	}
	var wg sync.WaitGroup
	fails := make([]error, callers)
	for who := range callers {
		wg.Go(func() {
			for i := who; i < peerRowsCount && fails[who] == nil; i += callers {
				_, fails[who] = sendJSON(address, root, "POST", "/api/collections/colors/records", map[string]any{
					"id":  fmt.Sprintf("c%014d", i),
					"key": fmt.Sprintf("color-%06d", i), "color": fmt.Sprintf("#%06x", i*7919%0xffffff),
				})
			}
		})
	}
	wg.Wait()
	user := map[string]any{"email": "peer@example.com", "password": password, "passwordConfirm": password}
	_, err = sendJSON(address, root, "POST", "/api/collections/users/records", user)
	if err = errors.Join(append(fails, err)...); err != nil {
		return "", err
	}
	login, err := sendJSON(
		address, "", "POST", "/api/collections/users/auth-with-password",
		map[string]any{"identity": "peer@example.com", "password": password},
	)
	token, _ := login["token"].(string)
	return token, err
}

// sendJSON sends a request with a body of JSON and returns the answer's.
func sendJSON(address, token, method, path string, body any) (map[string]any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, "http://"+address+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s %s %w", method, path, res.Status, answer, err)
	}
	var out map[string]any
	return out, json.Unmarshal(answer, &out)
}
