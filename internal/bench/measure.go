package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// readOne reads single colors with session authentication from 16 callers.
func readOne(_ context.Context, w *world) (result, error) {
	return w.requests(0.6, func(c *caller, who, i int) error {
		_, err := c.do("GET", fmt.Sprintf("/api/colors/color-%06d", (who*631+i*7)%10000), "")
		return err
	})
}

// upsertOne writes single colors from 16 callers.
func upsertOne(_ context.Context, w *world) (result, error) {
	return w.requests(0.5, func(c *caller, who, i int) error {
		_, err := c.do("PUT", fmt.Sprintf("/api/colors/color-%06d", (who*631+i*7)%10000), `{"color":"#123abc"}`)
		return err
	})
}

// listAll reads the flat list of 10,000 colors, one caller.
func listAll(_ context.Context, w *world) (result, error) {
	return w.repeated(1, 0.6, func(c *caller, _, _ int) error {
		n, err := c.do("GET", "/api/colors-list", "")
		if err == nil && n < 1<<20 {
			return fmt.Errorf("a list of %d bytes is not whole", n)
		}
		return err
	})
}

func (w *world) requests(must float64, request func(c *caller, who, i int) error) (result, error) {
	return w.repeated(callers, must, request)
}

// repeated measures requests a second, at least must times those of the bare handler.
func (w *world) repeated(n int, must float64, request func(c *caller, who, i int) error) (result, error) {
	side := func(address string) func() (float64, error) {
		return func() (float64, error) { return throughput(address, w.token, n, 1500*time.Millisecond, request) }
	}
	ours, bare, ratio, err := inTurn(side(w.ours), side(w.bare))
	return result{
		ours: perSecond(ours), bare: perSecond(bare),
		ratio: ratio, must: fmt.Sprintf("≥ %.2f", must), met: ratio >= must,
	}, err
}

// many is how many colors an import brings.
const many = 100000

// importFile is the file of an import.
func importFile() []byte {
	type element struct {
		Key   string `json:"key"`
		Color string `json:"color"`
	}
	all := make([]element, many)
	for i, c := range someColors("import", 0, many) {
		all[i] = element{c.Key, c.Color}
	}
	raw, _ := json.Marshal(all)
	return raw
}

// importMany imports 100,000 colors over HTTP, against a bulk upsert of the same rows in one
// transaction.
func importMany(ctx context.Context, w *world) (result, error) {
	file := importFile()
	rows := someColors("import", 0, many)
	ours, bare, ratio, err := inTurn(
		func() (float64, error) { return w.importOnce(file) },
		func() (float64, error) { return w.bulkUpsert(ctx, rows) },
	)
	return result{ours: seconds(ours), bare: seconds(bare), ratio: ratio, must: "≤ 2.00", met: ratio <= 2}, err
}

// importOnce stages the file and times its import.
func (w *world) importOnce(file []byte) (float64, error) {
	upload, err := w.post("/api/uploads?filename=colors.json", "application/octet-stream", file)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	_, err = w.post("/api/colors-import", "application/json", fmt.Appendf(nil, `{"uploadId":%q}`, upload["id"]))
	return time.Since(begin).Seconds(), err
}

func (w *world) post(path, contentType string, body []byte) (map[string]any, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+w.ours+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode >= 300 {
		return nil, fmt.Errorf("%s answered %s: %v %w", path, res.Status, answer, err)
	}
	return answer, nil
}

// bulkUpsert is the bare limit of an import: rows that are in memory, in chunks of 500, in one
// transaction.
func (w *world) bulkUpsert(ctx context.Context, rows []colors.Color) (float64, error) {
	const chunk = 500
	query := `INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at) VALUES ` +
		bunx.Values(chunk, 7) +
		` ON CONFLICT (tenant_id, key) DO UPDATE SET color = excluded.color, updated_at = excluded.updated_at`
	begin := time.Now()
	tx, err := w.db.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	for i := 0; i < len(rows); i += chunk {
		args := make([]any, 0, chunk*7)
		for _, c := range rows[i : i+chunk] {
			args = append(args, "default", c.Key, c.Key, c.Color, c.Source, bunx.At(c.CreatedAt), bunx.At(c.UpdatedAt))
		}
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return 0, err
		}
	}
	err = tx.Commit()
	return time.Since(begin).Seconds(), err
}

// importMemory samples how far the heap in use grows during an import.
func importMemory(_ context.Context, w *world) (result, error) {
	file := importFile()
	if _, err := w.importOnce(file); err != nil { // fills the pools
		return result{}, err
	}
	grown, err := peak(func() error { _, err := w.importOnce(file); return err })
	return result{ours: fmt.Sprintf("%.0f MiB", grown), must: "< 64 MiB", met: grown < 64}, err
}

// startTime builds the server and times it from exec to ready on an existing SQLite file.
func startTime(ctx context.Context) (result, error) {
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := buildServer(ctx, dir)
	if err != nil {
		return result{}, err
	}
	var all []float64
	for range rounds {
		s, err := startOnce(ctx, binary, "/readyz", "--data="+filepath.Join(dir, "data"))
		if err != nil {
			return result{}, err
		}
		all = append(all, s)
	}
	s := median(all[1:]) // the first one makes the file
	return result{name: "start to ready", engine: "sqlite", ours: seconds(s), must: "< 300ms", met: s < 0.3}, nil
}

// buildServer builds the server into a folder and returns its path.
func buildServer(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "tenantcontent")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/tenantcontent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
}

// startOnce starts the server and returns the seconds from then until a path answers 200.
func startOnce(ctx context.Context, binary, path string, flags ...string) (float64, error) {
	const address = "127.0.0.1:18473"
	server := exec.CommandContext(ctx, binary, append(flags, "--listen="+address)...)
	begin := time.Now()
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	for time.Since(begin) < 10*time.Second {
		res, err := http.Get("http://" + address + path)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return time.Since(begin).Seconds(), nil
			}
		}
		time.Sleep(time.Millisecond)
	}
	return 0, fmt.Errorf("the server was not ready in 10 s")
}
