package main

import (
	"context"
	"fmt"
	"time"
)

// insertMany adds colors from 16 callers of one tenant, beside the same without the triggers that
// keep the totals of lists. On SQLite the triggers of a table cannot be turned off.
func insertMany(ctx context.Context, w *world) (result, error) {
	if w.engine != "postgres" {
		return result{}, nil
	}
	side := func(triggers string) func() (float64, error) {
		return func() (float64, error) {
			if _, err := w.db.ExecContext(ctx, "ALTER TABLE tc_colors "+triggers+" TRIGGER USER"); err != nil {
				return 0, err
			}
			return throughput(w.ours, w.token, callers, 1500*time.Millisecond, func(c *caller, who, _ int) error {
				_, err := c.do("PUT", fmt.Sprintf("/api/colors/new-%d-%d", who, inserted.Add(1)), `{"color":"#123abc"}`)
				return err
			})
		}
	}
	with, without, ratio, err := inTurn(side("ENABLE"), side("DISABLE"))
	return result{
		ours:  perSecond(with),
		bare:  perSecond(without) + " uncounted",
		ratio: ratio,
		must:  "≥ 0.80",
		met:   ratio >= 0.8,
	}, err
}

// insertNoted adds colors from 16 callers of one tenant to a list with an index of trigrams, beside
// the same without one. Nothing adds the rows that are noted to the index meanwhile.
func insertNoted(ctx context.Context, w *world) (result, error) {
	side := func(query string) func() (float64, error) {
		return func() (float64, error) {
			if _, err := w.write(ctx, "default", query, "default"); err != nil {
				return 0, err
			}
			return throughput(w.ours, w.token, callers, 1500*time.Millisecond, func(c *caller, who, _ int) error {
				_, err := c.do("PUT", fmt.Sprintf("/api/colors/new-%d-%d", who, inserted.Add(1)), `{"color":"#123abc"}`)
				return err
			})
		}
	}
	with, without, ratio, err := inTurn(
		side(`INSERT INTO tc_search_lists (tenant_id, list, part) VALUES ($1, 'colors', '') ON CONFLICT DO NOTHING`),
		side(`DELETE FROM tc_search_lists WHERE tenant_id = $1`),
	)
	return result{
		ours:  perSecond(with),
		bare:  perSecond(without) + " without an index",
		ratio: ratio,
		must:  "≥ 0.80",
		met:   ratio >= 0.8,
	}, err
}
