package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/content"
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
