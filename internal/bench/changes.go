package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// keepColor writes single colors from 16 callers, each with its change in the feed, beside the same
// without the feed.
func keepColor(_ context.Context, w *world) (result, error) {
	return w.keeping(func(c *caller, who, i int) error {
		_, err := c.do("PUT", fmt.Sprintf("/api/colors/color-%06d", (who*631+i*7)%10000), `{"color":"#123abc"}`)
		return err
	})
}

// keepReport is keepColor for reports, one for each caller.
func keepReport(ctx context.Context, w *world) (result, error) {
	var paths [callers]string
	for i := range paths {
		e, err := w.app.Content.Create(w.admin, content.Entity{Kind: "report", Name: "Kept"})
		if err != nil {
			return result{}, err
		}
		paths[i] = "/api/reports/" + e.ID
	}
	var n atomic.Int64
	return w.keeping(func(c *caller, who, _ int) error {
		_, err := c.do("PUT", paths[who], fmt.Sprintf(`{"name": "Kept %d"}`, n.Add(1)))
		return err
	})
}

// bareKept is the query with which the bare handler adds the row of a change to a write.
const bareKept = "kept"

// keepBare is the limit of keepColor: the bare upsert of a color with one more row in its
// transaction, without the color before, beside the bare upsert.
func keepBare(_ context.Context, w *world) (result, error) {
	side := func(query string) func() (float64, error) {
		return func() (float64, error) {
			return throughput(w.bare, w.token, callers, 1500*time.Millisecond, func(c *caller, who, i int) error {
				path := fmt.Sprintf("/api/colors/color-%06d%s", (who*631+i*7)%10000, query)
				_, err := c.do("PUT", path, `{"color":"#123abc"}`)
				return err
			})
		}
	}
	kept, not, ratio, err := inTurn(side("?"+bareKept), side(""))
	return result{
		ours: perSecond(kept), bare: perSecond(not) + " not kept", ratio: ratio, // the limit has no goal
	}, err
}

// bareNumber makes the keys of the rows of bareUpsertKept.
var bareNumber atomic.Int64

func bareUpsertKept(r *http.Request, db *sql.DB, key string, w http.ResponseWriter) error {
	tx, err := db.BeginTx(r.Context(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	c, err := bareUpserted(r.Context(), r.Body, tx, key)
	if err != nil {
		return err
	}
	n, shown := bareNumber.Add(1), fmt.Sprintf("%0300d", 0)
	_, err = tx.ExecContext(r.Context(), `INSERT INTO tc_new_changes
		(tenant_id, n, id, kind, entity_id, action, username, before, after, created_at)
		VALUES ($1, $2, $3, 'color', $4, 'update', 'admin', $5, $5, $6)`,
		"default", n, fmt.Sprintf("bare-%031d", n), key, shown, bunx.At(c.UpdatedAt))
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return bareWrite(w, c)
}

// keeping measures writes a second with kept changes against the same without them.
func (w *world) keeping(write func(c *caller, who, i int) error) (result, error) {
	const must = 0.85
	app, err := tenantcontent.Open(tenantcontent.Config{DB: w.db, SecretKey: w.key, KeepChanges: true})
	if err != nil {
		return result{}, err
	}
	address, err := w.serve(app)
	if err != nil {
		return result{}, err
	}
	side := func(address string) func() (float64, error) {
		return func() (float64, error) { return throughput(address, w.token, callers, 1500*time.Millisecond, write) }
	}
	kept, not, ratio, err := inTurn(side(address), side(w.ours))
	return result{
		ours: perSecond(kept), bare: perSecond(not) + " not kept",
		ratio: ratio, must: fmt.Sprintf("≥ %.2f", must), met: ratio >= must,
	}, err
}
