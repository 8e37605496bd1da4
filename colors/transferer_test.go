package colors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
)

func TestTransferer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		s := colors.New(colors.Options{Store: bunstore.New(open(t))})
		root := actor.With(ctx, actor.Actor{Tenant: "acme", User: "root", Superuser: true})
		var file strings.Builder
		for n := range 1003 { // several batches
			fmt.Fprintf(&file, `,{"key": "k/%d é", "color": "blue:500", "source": "<s>"}`, n)
		}
		_, err := s.Import(root, strings.NewReader("["+file.String()[1:]+"]"))
		is.NoErr(err)
		p := s.Unchecked().Type().Transferer
		rows := transfertest.Rows(t, p, "acme")
		is.Equal(len(rows), 1003)
		land := entity.ImportOptions{Rule: entity.Fail}
		_, warnings, err := p.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(len(warnings), 0)
		is.Equal(transfertest.Rows(t, p, "evil"), rows) // the same bytes
		_, _, err = p.Import(ctx, "evil", rows, land)
		is.Equal(errs.CodeOf(err), errs.Conflict)

		one := func(key, text string) []entity.Row {
			return []entity.Row{{Key: entity.Key{Kind: "color", ID: key}, JSON: []byte(text)}}
		}
		land.Rule = entity.Overwrite
		actions, _, err := p.Import(ctx, "evil", one(rows[0].ID, `{"color": "#fff"}`), land)
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Updated})
		got, err := s.Get(actor.With(ctx, actor.Actor{Tenant: "evil", User: "eve"}), rows[0].ID)
		is.NoErr(err)
		is.Equal([]any{got.Color, got.Source == nil}, []any{"#fff", true}) // as the row says, without a source
		for _, bad := range []string{
			`{}`, `{"color": "reddish"}`, `{"color": 1}`, `[]`, `{"color": "#fff", "source": 1}`,
		} {
			_, _, err := p.Import(ctx, "evil", one("new", bad), land)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "color new: "))
		}
		_, _, err = p.Import(ctx, "evil", one("a\nb", `{"color": "#fff"}`), land)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		ref, err := s.Unchecked().Type().Lookup(ctx, "acme", rows[0].ID)
		is.NoErr(err)
		is.Equal(ref, entity.Ref{Kind: "color", ID: rows[0].ID, Name: rows[0].ID})
		for _, key := range []string{"none", "\x00", ""} {
			_, err := s.Unchecked().Type().Lookup(ctx, "acme", key)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		n, err := p.Remove(ctx, "evil", []string{rows[0].ID, rows[1].ID, "none"})
		is.NoErr(err)
		is.Equal(n, 2)
		is.Equal(len(transfertest.Rows(t, p, "acme")), 1003)
		needs, err := p.Needs(ctx, "acme", []string{rows[0].ID, "none"})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{rows[0].ID: nil})
	})
}
