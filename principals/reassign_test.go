package principals_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// TestReassign: who may, from whom, to whom.
func TestReassign(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		f.user(t, "mia")
		g := f.team(t, "Team One")
		by := func(user string, role actor.Role) context.Context {
			a := actor.Actor{Tenant: "acme", User: user}
			if role != actor.NoRole {
				a.Teams = map[string]actor.Role{g.ID: role}
			}
			return actor.With(t.Context(), a)
		}
		for _, c := range []struct {
			ctx      context.Context
			from, to string
			want     errs.Code
		}{
			{root(t), "jo", "mia", ""},
			{root(t), "jo", g.ID, ""},
			{by("jo", actor.NoRole), "jo", "mia", ""},
			{by("mia", actor.Admin), g.ID, "mia", ""},
			{by("mia", actor.Publisher), g.ID, "mia", errs.Unauthenticated},
			{by("mia", actor.Admin), "jo", "mia", errs.Unauthenticated},
			{by("mia", actor.NoRole), "nobody", "mia", errs.NotFound},
			{root(t), "*", "mia", errs.NotFound},
			{root(t), g.Slug, "mia", errs.NotFound},
			{root(t), "a\x00b", "mia", errs.NotFound},
			{root(t), "jo", "jo", errs.Invalid},
			{root(t), "jo", "*", errs.Invalid},
			{root(t), "jo", "nobody", errs.Invalid},
			{root(t), "jo", "", errs.Invalid},
			{root(t), "jo", "a\x00b", errs.Invalid},
			{
				actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", ReadOnly: true}), "jo", "mia",
				errs.Unauthenticated,
			},
			{
				actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "eve", Superuser: true}), "jo", "mia",
				errs.NotFound,
			},
			{t.Context(), "jo", "mia", errs.Unauthenticated},
		} {
			f.content.owned["acme/jo"], f.content.owned["acme/mia"] = 3, 0
			moved, err := f.Reassign(c.ctx, c.from, c.to)
			is.Equal(errs.CodeOf(err), c.want)
			is.Equal(err == nil, c.want == "")
			if c.want != "" {
				is.Equal(f.content.owned["acme/jo"], 3)
				is.Equal(len(moved), 0)
				continue
			}
			is.Equal(moved[0].OwnerID, c.to)
			is.Equal(f.content.kinds, []entity.Kind{
				"dataset", "datasource", "report", "query", "file",
				"job", "visual", "assistant", "library", "template", "app",
			})
		}
	})
}
