package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// bundleSizeRows measures what is done with one entry of a bundle that has as many as one may have,
// against one of ten.
func bundleSizeRows(ctx context.Context, engine string, pattern *regexp.Regexp) ([]result, error) {
	return onWorld(ctx, engine, "size, bundles", pattern, bundleRows)
}

func bundleRows(ctx context.Context, w *world) (all []result, err error) {
	large, first, err := w.bundleOf(ctx, "large", bundles.MaxEntries-1)
	if err != nil {
		return nil, err
	}
	small, one, err := w.bundleOf(ctx, "small", 10)
	if err != nil {
		return nil, err
	}
	if err := w.analyze(ctx); err != nil {
		return nil, err
	}
	for _, m := range []struct {
		name string
		do   func(bundle, entry string) error
	}{
		{"entry of a bundle of 10,000 is read", func(bundle, entry string) error {
			_, err := w.app.Bundles.Entry(w.admin, bundle, entry)
			return err
		}},
		{"entry of a bundle of 10,000 is added and deleted", func(bundle, _ string) error {
			e, err := w.app.Bundles.CreateEntry(w.admin, bundle, bundles.Entry{Type: "user", EntityID: "admin"})
			if err != nil {
				return err
			}
			return w.app.Bundles.DeleteEntry(w.admin, bundle, e.ID)
		}},
	} {
		side := func(bundle, entry string) func() (float64, error) {
			return func() (float64, error) {
				n, begin := 0, time.Now()
				for ; time.Since(begin) < time.Second; n++ {
					if err := m.do(bundle, entry); err != nil {
						return 0, err
					}
				}
				return time.Since(begin).Seconds() / float64(n), nil
			}
		}
		ours, bare, ratio, err := inTurn(side(large, first), side(small, one))
		if err != nil {
			return nil, err
		}
		all = append(all, result{
			name: m.name, ratio: ratio, must: "≤ 3.00", met: ratio <= 3,
			ours: fmt.Sprintf("%.2fms", ours*1000), bare: fmt.Sprintf("%.2fms of 10", bare*1000),
		})
	}
	return all, nil
}

// bundleOf makes a bundle with entries, and returns its id and that of an entry.
func (w *world) bundleOf(ctx context.Context, slug string, entries int) (bundle, entry string, err error) {
	b, err := w.app.Bundles.Create(w.admin, bundles.Bundle{Name: slug, Slug: slug})
	if err != nil {
		return "", "", err
	}
	prefix := b.ID[:len(b.ID)-12]
	_, err = w.write(ctx, "default",
		`INSERT INTO tc_bundle_entries (tenant_id, id, bundle_id, type, entity_id, data, created_at, updated_at)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'default', $2 || (100000000000 + i + $3), $4, 'gone', 'e' || i, '{}', $5, $5 FROM n`, entries, prefix,
		1_000_000*entries, b.ID, bunx.At(time.Now()))
	return b.ID, fmt.Sprintf("%s%d", prefix, 100000000000+1+1_000_000*entries), err
}
