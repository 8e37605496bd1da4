package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
)

// sizeDelete is a delete in a tenant of the group size: make makes what it deletes.
type sizeDelete struct {
	name string
	make func(w *world, as context.Context) (remove func() error, err error)
}

// sizeDeletes may take three times as long in the big tenant as in the small one.
var sizeDeletes = []sizeDelete{
	{"delete of a comment", func(w *world, as context.Context) (func() error, error) {
		c, err := w.app.Comments.Create(as, entity.Key{Kind: "team", ID: sizeTeam}, "said")
		return func() error { return w.app.Comments.Delete(as, c.ID) }, err
	}},
	{"delete of a report with a comment", func(w *world, as context.Context) (func() error, error) {
		r, err := w.app.Content.Create(
			as, content.Entity{Kind: "report", Name: "to be deleted", Data: json.RawMessage("{}")},
		)
		if err == nil {
			_, err = w.app.Comments.Create(as, entity.Key{Kind: "report", ID: r.ID}, "said")
		}
		return func() error { return w.app.Content.Delete(as, "report", r.ID) }, err
	}},
}

// sizeDelete measures how the median time of deletes grows with a tenant.
func (w *world) sizeDelete(ctx context.Context, d sizeDelete) (result, error) {
	fmt.Fprintf(os.Stderr, "size: %s on %s …\n", d.name, w.engine)
	side := func(tenant string) func() (float64, error) {
		as := actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
		return func() (float64, error) {
			var times []float64
			for range 100 {
				remove, err := d.make(w, as)
				if err != nil {
					return 0, err
				}
				begin := time.Now()
				if err := remove(); err != nil {
					return 0, err
				}
				times = append(times, time.Since(begin).Seconds())
			}
			slices.Sort(times)
			return times[len(times)/2], nil
		}
	}
	big, small, ratio, err := inTurn(side("big"), side("small"))
	return result{
		name: "size: " + d.name, engine: w.engine,
		ours: fmt.Sprintf("%.2fms of a million", big*1000), bare: fmt.Sprintf("%.2fms of 10,000", small*1000),
		ratio: ratio, must: "≤ 3.00", met: ratio <= 3,
	}, err
}
