package transfer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// slugged is an entity with a slug, written as "id=slug".
type slugged struct{ id, slug string }

func sluggeds(text string) (all []slugged) {
	for part := range strings.FieldsSeq(text) {
		id, slug, _ := strings.Cut(part, "=")
		all = append(all, slugged{id, slug})
	}
	return all
}

// TestSlugsPassOn: which slugs are looked up, and which entities are in Yield because others take
// their slugs.
func TestSlugsPassOn(t *testing.T) {
	for _, c := range []struct{ there, rows, asked, yield, conflict string }{
		{there: "", rows: "a=1 b=2 c=", asked: "1 2"},
		{there: "a=1 b=2", rows: "a=1 b=2"},
		{there: "a=1 b=2", rows: "a=3 b=2", asked: "3"},
		{there: "a=1 b=2", rows: "a=2 b=1", asked: "2 1", yield: "a b"},
		{there: "a=1 b=2 c=3", rows: "a=2 b=4 c=", asked: "2 4", yield: "b"},
		{there: "a=1", rows: "a=2 b=1", asked: "2 1", yield: "a"},
		{there: "a= b=1", rows: "a=1 b=", asked: "1", yield: "b"},
		{there: "a=1 x=2", rows: "a=2", asked: "2", conflict: "thing a: the slug 2 belongs to x."},
		{there: "x=2", rows: "a=2", asked: "2", conflict: "thing a: the slug 2 belongs to x."},
		{there: "", rows: "a=1 b=1", conflict: "thing b: the slug 1 belongs to a."},
	} {
		is := is.New(t)
		there, asked, yield := sluggeds(c.there), "", ""
		some := func(ids []string) []slugged {
			return slices.DeleteFunc(slices.Clone(there), func(s slugged) bool { return !slices.Contains(ids, s.id) })
		}
		transferer := transfer.Transferer[slugged]{
			Kind: "thing", ID: func(s slugged) string {
				return s.id
			}, Natural: func(s slugged) string { return s.slug },
			Some: func(_ context.Context, _ string, ids []string) ([]slugged, error) { return some(ids), nil },
			Read: func(_ string, r entity.Row) (slugged, error) { return slugged{r.ID, string(r.JSON)}, nil },
			Taken: func(_ context.Context, _ string, naturals []string) (map[string]string, error) {
				asked = strings.Join(naturals, " ")
				taken := map[string]string{}
				for _, s := range there {
					if slices.Contains(naturals, s.slug) {
						taken[s.slug] = s.id
					}
				}
				return taken, nil
			},
			Put: func(_ context.Context, b *transfer.Batch[slugged]) error {
				yield = strings.Join(b.Yield, " ")
				return nil
			},
			InTx: func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) },
		}
		var rows []entity.Row
		for _, s := range sluggeds(c.rows) {
			rows = append(rows, entity.Row{Key: entity.Key{Kind: "thing", ID: s.id}, JSON: []byte(s.slug)})
		}
		_, _, err := transferer.Import(t.Context(), "acme", rows, entity.ImportOptions{Rule: entity.Overwrite})
		if c.conflict == "" {
			is.NoErr(err)
		} else {
			is.Equal(errs.CodeOf(err), errs.Conflict)
			is.Equal(errs.MessageOf(err), c.conflict)
		}
		is.Equal(asked, c.asked)
		is.Equal(yield, c.yield)
	}
}

// TestSlugsOfAnotherTenantsDeploy: slugs that other entities have get numbers, which they keep as
// long as the slugs are taken.
func TestSlugsOfAnotherTenantsDeploy(t *testing.T) {
	long := strings.Repeat("x", 128)
	many := "x=s"
	for n := 2; n < 1500; n++ {
		many += fmt.Sprintf(" x%d=s-%d", n, n)
	}
	for _, c := range []struct{ there, rows, written string }{
		{there: "", rows: "a=1 b=2 c=", written: "a=1 b=2 c="},
		{there: "x=2", rows: "a=2", written: "a=2-2"},
		{there: "x=2 a=2-2", rows: "a=2", written: "a=2-2"},
		{there: "x=2 a=2-7", rows: "a=2", written: "a=2-7"},
		{there: "a=2-7", rows: "a=2", written: "a=2"},
		{there: "x=2 y=2-2 a=1", rows: "a=2", written: "a=2-3"},
		{there: "", rows: "a=1 b=1 c=1", written: "a=1 b=1-2 c=1-3"},
		{there: "b=1", rows: "a=1 b=1", written: "a=1-2 b=1"}, // it has the slug already
		{there: "a=1 b=2", rows: "a=2 b=1", written: "a=2 b=1"},
		{there: "x=y a=y-2", rows: "b=y-2 a=y", written: "b=y-2 a=y-3"},
		{there: "x=2 a=2-07", rows: "a=2", written: "a=2-2"},
		{there: "x=eve:2", rows: "a=eve:2 b=jo:2", written: "a=eve:2-2 b=jo:2"},
		{there: "x=" + long, rows: "a=" + long, written: "a=" + long[2:] + "-2"},
		{there: many, rows: "a=s b=s", written: "a=s-1500 b=s-1501"},
	} {
		is := is.New(t)
		there, written, told := sluggeds(c.there), []string{}, 0
		transferer := transfer.Transferer[slugged]{
			Kind: "thing", ID: func(s slugged) string {
				return s.id
			}, Natural: func(s slugged) string { return s.slug },
			Rename: func(s *slugged, slug string) { s.slug = s.slug[:strings.IndexByte(s.slug, ':')+1] + slug },
			Some: func(_ context.Context, _ string, ids []string) ([]slugged, error) {
				return slices.DeleteFunc(slices.Clone(there), func(s slugged) bool {
					return !slices.Contains(ids, s.id)
				}), nil
			},
			Read: func(_ string, r entity.Row) (slugged, error) { return slugged{r.ID, string(r.JSON)}, nil },
			Taken: func(_ context.Context, _ string, naturals []string) (map[string]string, error) {
				taken := map[string]string{}
				for _, s := range there {
					taken[s.slug] = s.id
				}
				maps.DeleteFunc(taken, func(natural, _ string) bool { return !slices.Contains(naturals, natural) })
				return taken, nil
			},
			Put: func(_ context.Context, b *transfer.Batch[slugged]) error {
				for _, s := range b.Write {
					written = append(written, s.id+"="+s.slug)
				}
				return nil
			},
			InTx: func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) },
		}
		var rows []entity.Row
		for _, s := range sluggeds(c.rows) {
			rows = append(rows, entity.Row{Key: entity.Key{Kind: "thing", ID: s.id}, JSON: []byte(s.slug)})
		}
		_, warnings, err := transferer.Import(t.Context(), "acme", rows, entity.ImportOptions{
			Rule: entity.Overwrite, CrossTenant: true, Notify: func(string) { told++ },
		})
		is.NoErr(err)
		is.Equal(len(warnings), 0) // the caller would learn a number from it
		is.Equal(strings.Join(written, " "), c.written)
		for i, r := range rows {
			if written[i] != r.ID+"="+string(r.JSON) {
				told--
			}
		}
		is.Equal(told, 0)
	}
}
