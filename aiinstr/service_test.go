package aiinstr_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// people is a Directory.
type people map[string]bool

func (p people) Known(_ context.Context, _ string, ids []string) (map[string]bool, error) {
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = p[id]
	}
	return known, nil
}

// switches are which tenants have AI.
type switches map[string]bool

func (s switches) AIEnabled(_ context.Context, tenant string) (bool, error) { return s[tenant], nil }

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func service(t testing.TB, open dbtest.Opener) *aiinstr.Service {
	n := 0
	return aiinstr.New(aiinstr.Options{
		Store:    bunstore.New(dbtest.People(t, open(t), "jo", "mia", "root")),
		Settings: switches{"acme": true, "evil": true}, Directory: people{"jo": true},
		Now:   func() time.Time { return time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC) },
		NewID: func() string { n++; return id(n) },
	})
}

func as(t testing.TB, tenant, user string) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: user, AI: true})
}

// TestAIComesFirst: every method checks the switch, then the credential, before anything else.
func TestAIComesFirst(t *testing.T) {
	s := service(t, dbtest.SQLite)
	for _, c := range []struct {
		actor actor.Actor
		code  errs.Code
	}{
		{actor.Actor{}, errs.Unauthenticated},
		{actor.Actor{Tenant: "off", User: "jo", AI: true, Superuser: true}, errs.Invalid},
		{actor.Actor{Tenant: "off", User: "jo"}, errs.Invalid},
		{actor.Actor{Tenant: "acme", User: "jo", Teams: map[string]actor.Role{"t": actor.Admin}}, errs.Forbidden},
	} {
		is, ctx := is.New(t), actor.With(t.Context(), c.actor)
		calls := map[string]func() error{
			"List":   func() error { _, err := s.List(ctx, paging.Query{Sort: "nonsense"}); return err },
			"Get":    func() error { _, err := s.Get(ctx, "?"); return err },
			"Create": func() error { _, err := s.Create(ctx, aiinstr.Instruction{}); return err },
			"Update": func() error { _, err := s.Update(ctx, "?", nil); return err },
			"Delete": func() error { return s.Delete(ctx, "?") },
			"Expand": func() error { _, _, err := s.Expand(ctx, "${x}"); return err },
		}
		for name, call := range calls {
			err := call()
			if errs.CodeOf(err) != c.code {
				t.Errorf("%s as %+v: %v", name, c.actor, err)
			}
			if c.code == errs.Invalid {
				is.Equal(errs.MessageOf(err), "AI is not enabled on the system")
			}
		}
	}
}

func TestRules(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open)
		jo, mia := as(t, "acme", "jo"), as(t, "acme", "mia")
		blank := " \t"
		made, err := s.Create(jo, aiinstr.Instruction{
			Slug:        "tone",
			Description: &blank,
			Content:     " be kind ",
			OwnerID:     "mia",
			Tenant:      "evil",
			ID:          id(9),
		})
		is.NoErr(err)
		is.Equal(made.OwnerID+made.Tenant+made.ID, "joacme"+id(1))
		is.Equal(made.Description, nil)
		is.Equal(made.Content, " be kind ") // as it is
		_, err = s.Create(mia, aiinstr.Instruction{Slug: "tone", Content: "x"})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		edit := func(i *aiinstr.Instruction) error {
			i.Slug, i.OwnerID, i.Content = "other", "mia", "new"
			return nil
		}
		_, err = s.Update(mia, "tone", edit)
		is.Equal(errs.CodeOf(err), errs.Forbidden)
		is.Equal(errs.CodeOf(s.Delete(mia, "tone")), errs.Forbidden)
		got, err := s.Update(jo, strings.ToUpper(made.ID), edit)
		is.NoErr(err)
		is.Equal(got.Slug+got.OwnerID+got.Content, "tonejonew")
		_, err = s.Update(jo, "tone", func(i *aiinstr.Instruction) error { i.Content = " "; return nil })
		is.Equal(errs.MessageOf(err), "content is required")
		root := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "root", Superuser: true})
		_, err = s.Update(root, "tone", edit)
		is.NoErr(err)
		is.Equal(errs.CodeOf(s.Delete(as(t, "evil", "jo"), "tone")), errs.NotFound)
		is.NoErr(s.Delete(root, "tone"))
		_, err = s.Get(jo, made.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}

func TestAccept(t *testing.T) {
	is, s := is.New(t), service(t, dbtest.SQLite)
	long := strings.Repeat("x", 4<<10+1)
	for _, c := range []struct {
		i    aiinstr.Instruction
		want string // the beginning of the message
	}{
		{aiinstr.Instruction{Content: "x"}, "slug is required"},
		{aiinstr.Instruction{Slug: "-a", Content: "x"}, "slug must"},
		{aiinstr.Instruction{Slug: "a b", Content: "x"}, "slug must"},
		{aiinstr.Instruction{Slug: strings.Repeat("a", 129), Content: "x"}, "slug must"},
		{aiinstr.Instruction{Slug: id(1), Content: "x"}, "slug must"},
		{aiinstr.Instruction{Slug: "a"}, "content is required"},
		{aiinstr.Instruction{Slug: "a", Content: " \n"}, "content is required"},
		{aiinstr.Instruction{Slug: "a", Content: "a\x00"}, "content must"},
		{aiinstr.Instruction{Slug: "a", Content: "a\xff"}, "content must"},
		{aiinstr.Instruction{Slug: "a", Content: strings.Repeat("x", 256<<10+1)}, "content must"},
		{aiinstr.Instruction{Slug: "a", Content: "x", Description: &long}, "description must"},
	} {
		_, err := s.Create(as(t, "acme", "jo"), c.i)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		if !strings.HasPrefix(errs.MessageOf(err), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
	_, err := s.Create(as(t, "acme", "jo"), aiinstr.Instruction{Slug: "a", Content: strings.Repeat("x", 256<<10)})
	is.NoErr(err)
}

func TestTransferer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open)
		about := "a <b> & \u2028"
		for _, i := range []aiinstr.Instruction{
			{Slug: "tone", Description: &about, Content: "be <kind> & \"short\""},
			{Slug: "style", Content: "${tone} $${x} ${style} ${none}"},
		} {
			_, err := s.Create(as(t, "acme", "jo"), i)
			is.NoErr(err)
		}
		p, ctx := s.Unchecked().Type().Transferer, t.Context()
		needs, err := p.Needs(ctx, "acme", []string{id(2), id(1), id(7)})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{id(1): nil, id(2): {{Kind: "aiInstruction", ID: id(1)}}})

		rows := transfertest.Rows(t, p, "acme")
		actions, warnings, err := p.Import(ctx, "evil", rows, entity.ImportOptions{Rule: entity.Fail, Owner: "eve"})
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Created, entity.Created})
		is.Equal(len(warnings), 0)
		is.Equal(transfertest.Rows(t, p, "evil"), rows) // the same bytes

		for rule, want := range map[entity.Rule]entity.ImportAction{
			entity.Skip:      entity.Skipped,
			entity.Overwrite: entity.Updated,
		} {
			actions, _, err = p.Import(ctx, "evil", rows[:1], entity.ImportOptions{Rule: rule, Owner: "eve"})
			is.NoErr(err)
			is.Equal(actions, []entity.ImportAction{want})
		}
		_, _, err = p.Import(ctx, "evil", rows, entity.ImportOptions{Rule: entity.Fail, Owner: "eve"})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		n, err := p.Remove(ctx, "evil", []string{id(1), id(2), id(3)})
		is.NoErr(err)
		is.Equal(n, 2)

		strange := entity.Row{
			Key:  entity.Key{Kind: "aiInstruction", ID: id(5)},
			JSON: []byte(`{"slug": "x", "content": "x", "ownerId": "ghost", "tenant": "acme"}`),
		}
		_, warnings, err = p.Import(
			ctx, "evil", []entity.Row{strange}, entity.ImportOptions{Rule: entity.Skip, Owner: "eve"},
		)
		is.NoErr(err)
		is.Equal(warnings, []string{"aiInstruction " + id(5) + ": its owner ghost is not known here; eve owns it now."})
		strange.ID = id(6)
		_, _, err = p.Import(
			ctx, "evil", []entity.Row{strange}, entity.ImportOptions{Rule: entity.Overwrite, Owner: "eve"},
		)
		is.Equal(errs.MessageOf(err), "aiInstruction "+id(6)+": the slug x belongs to "+id(5)+".")
		for bad, want := range map[string]string{
			`[]`:          "is not a JSON object",
			`{"slug": 1}`: "slug must be a string", `{"slug": "a"}`: "content is required",
			`{"slug": "a", "content": "x", "createdAt": "soon"}`: "createdAt must be a time such as " +
				"2026-11-20T20:31:00.123456Z",
			`{"slug": "a b", "content": "x"}`:    "slug must be",
			`{"slug": "a", "content": "\u0000"}`: "content must not have NUL characters",
		} {
			_, _, err := p.Import(ctx, "evil", []entity.Row{{
				Key:  entity.Key{Kind: "aiInstruction", ID: id(8)},
				JSON: []byte(bad),
			}}, entity.ImportOptions{Rule: entity.Skip})
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "aiInstruction "+id(8)+": "+want))
		}
	})
}
