package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// shippedRows and shippedSize are how many entities a bundle ships, and how long the data of one
// is.
const shippedRows, shippedSize = 10_000, 10 << 10

// shipped is the entities of the measurements: the same on each call.
func shipped() [][2]string {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([][2]string, shippedRows)
	for i := range rows {
		var data strings.Builder
		for n := 0; data.Len() < shippedSize-100; n++ {
			fmt.Fprintf(
				&data, `,{"field":"column_%d","label":"Column %d","width":%d,"formula":"%x"}`, n, r.IntN(1000),
				r.IntN(300), r.Uint64(),
			)
		}
		rows[i] = [2]string{
			uuid.NewSHA1(uuid.NameSpaceURL, []byte{byte(i), byte(i >> 8)}).String(),
			`{"fields":[` + data.String()[1:] + `]}`,
		}
	}
	return rows
}

// insertShipped is the bare limit of an import: the rows, which are in memory, in chunks of 500, in
// one transaction.
func (w *world) insertShipped(ctx context.Context, rows [][2]string) (float64, error) {
	const chunk, columns = 500, 12
	query := `INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug, owner_id, data, system, ` +
		`created_at, updated_at) VALUES ` +
		bunx.Values(chunk, columns)
	now := bunx.At(time.Now())
	begin := time.Now()
	tx, err := w.db.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	for i := 0; i < len(rows); i += chunk {
		args := make([]any, 0, chunk*columns)
		for n, row := range rows[i : i+chunk] {
			name := fmt.Sprintf("dataset-%d", i+n)
			args = append(args, "default", "dataset", row[0], name, name, name, name, "admin", row[1], false, now, now)
		}
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return 0, err
		}
	}
	err = tx.Commit()
	return time.Since(begin).Seconds(), err
}

// dropShipped removes the entities again.
func (w *world) dropShipped(ctx context.Context) error {
	_, err := w.db.ExecContext(ctx, `DELETE FROM tc_entities WHERE tenant_id = 'default' AND kind = 'dataset'`)
	return err
}

// shipment stocks the entities and a bundle with a report that needs them all, and returns what
// takes them away.
func (w *world) shipment(ctx context.Context) (end func() error, err error) {
	rows := shipped()
	if _, err := w.insertShipped(ctx, rows); err != nil {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row[0]
	}
	data, err := json.Marshal(map[string]any{"datasetIds": ids})
	if err != nil {
		return nil, err
	}
	report, err := w.app.Content.Create(w.admin, content.Entity{Kind: "report", Name: "All", Data: data})
	if err != nil {
		return nil, err
	}
	b, err := w.app.Bundles.Create(w.admin, bundles.Bundle{Name: "All", Slug: "all"})
	if err != nil {
		return nil, err
	}
	_, err = w.app.Bundles.CreateEntry(w.admin, b.ID, bundles.Entry{Type: "report", EntityID: report.ID})
	return func() error {
		if err := w.app.Bundles.Delete(w.admin, b.ID); err != nil {
			return err
		}
		if err := w.app.Content.Delete(w.admin, "report", report.ID); err != nil {
			return err
		}
		return w.dropShipped(ctx)
	}, err
}

// exportOnce exports the bundle over HTTP and returns the time to its first byte and to its last.
func (w *world) exportOnce(to io.Writer) (first, whole float64, err error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+w.ours+"/api/bundles/all/_export", nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	begin := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("the export answered %s", res.Status)
	}
	if _, err := io.CopyN(to, res.Body, 1); err != nil {
		return 0, 0, err
	}
	first = time.Since(begin).Seconds()
	_, err = io.Copy(to, res.Body)
	return first, time.Since(begin).Seconds(), err
}

// exportMany exports 10,000 entities, 100 MiB: how fast, how soon it begins, and how far the heap
// grows.
func exportMany(ctx context.Context, w *world) (r result, err error) {
	end, err := w.shipment(ctx)
	if err != nil {
		return r, err
	}
	defer func() {
		if failed := end(); err == nil {
			err = failed
		}
	}()
	var firsts, speeds []float64
	for i := range rounds + 1 {
		first, whole, err := w.exportOnce(io.Discard)
		if err != nil {
			return r, err
		}
		if i > 0 { // the first one warms caches
			firsts, speeds = append(firsts, first), append(speeds, shippedRows*shippedSize/whole/1e6)
		}
	}
	grown, err := heapGrowth(func() error { _, _, err := w.exportOnce(io.Discard); return err })
	speed, first := median(speeds), median(firsts)
	return result{
		ours: fmt.Sprintf("%.0f MB/s, first byte %s, %.0f MiB", speed, seconds(first), grown),
		must: "≥ 60 MB/s, < 200ms, < 128 MiB",
		met:  speed >= 60 && first < 0.2 && grown < 128,
	}, err
}

// importBundle imports the same over HTTP, against a bulk insert of the same rows.
func importBundle(ctx context.Context, w *world) (r result, err error) {
	end, err := w.shipment(ctx)
	if err != nil {
		return r, err
	}
	defer func() {
		if failed := end(); err == nil {
			err = failed
		}
	}()
	var file bytes.Buffer
	if _, _, err := w.exportOnce(&file); err != nil {
		return r, err
	}
	load := func() error {
		_, err := w.post("/api/_import-bundle", "application/gzip", file.Bytes())
		return err
	}
	ours := func() (float64, error) {
		if err := w.dropShipped(ctx); err != nil {
			return 0, err
		}
		begin := time.Now()
		err := load()
		return time.Since(begin).Seconds(), err
	}
	rows := shipped()
	bare := func() (float64, error) {
		if err := w.dropShipped(ctx); err != nil {
			return 0, err
		}
		return w.insertShipped(ctx, rows)
	}
	o, b, ratio, err := inTurn(ours, bare)
	if err != nil {
		return r, err
	}
	if err := w.dropShipped(ctx); err != nil {
		return r, err
	}
	rows = nil // the heap is measured without them
	grown, err := heapGrowth(load)
	return result{
		ours: fmt.Sprintf("%s, %.0f MiB", seconds(o), grown), bare: seconds(b), ratio: ratio, must: "≤ 3.00, < 128 MiB",
		met: ratio <= 3 && grown < 128,
	}, err
}

// heapGrowth runs fn and returns by how many MiB the heap in use grows at most.
func heapGrowth(fn func() error) (float64, error) {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		top := uint64(0)
		for {
			select {
			case <-stop:
				peak <- top
				return
			case <-time.After(5 * time.Millisecond):
				runtime.ReadMemStats(&now)
				top = max(top, now.HeapInuse)
			}
		}
	}()
	err := fn()
	close(stop)
	return float64(int64(<-peak)-int64(before.HeapInuse)) / (1 << 20), err
}
