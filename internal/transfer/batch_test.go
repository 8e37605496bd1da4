package transfer_test

import (
	"context"
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

// TestSlugsPassOn: which slugs are asked for, and which entities give theirs up before others get them.
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
		porter := transfer.Porter[slugged]{
			Kind: "thing", ID: func(s slugged) string { return s.id }, Natural: func(s slugged) string { return s.slug },
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
		_, _, err := porter.Import(t.Context(), "acme", rows, entity.Landing{Rule: entity.Overwrite})
		if c.conflict == "" {
			is.NoErr(err)
		} else {
			is.Equal(errs.CodeOf(err), errs.Conflict)
			is.Equal(errs.MessageOf(err), c.conflict)
		}
		if strings.HasSuffix(c.conflict, "to x.") { // which is for the tenant's own people
			_, _, err = porter.Import(t.Context(), "acme", rows, entity.Landing{Rule: entity.Overwrite, CrossTenant: true})
			is.Equal(errs.MessageOf(err), "thing a: the slug 2 belongs to another one there.")
		}
		is.Equal(asked, c.asked)
		is.Equal(yield, c.yield)
	}
}
