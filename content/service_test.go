package content_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/content"
	librarystore "github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
	"github.com/tenantcontent/tenantcontent/paging"
)

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// people is a Directory.
type people []string

func (p people) Known(_ context.Context, _ string, ids []string) (map[string]bool, error) {
	known := map[string]bool{}
	for _, id := range ids {
		known[id] = slices.Contains(p, id)
	}
	return known, nil
}

// widget is a kind that is kept elsewhere: one of them is there.
var widget = entity.Type{Kind: "widget", Lookup: func(_ context.Context, _, id string) (entity.Ref, error) {
	if id == "w1" {
		return entity.Ref{Kind: "widget", ID: "w1"}, nil
	}
	return entity.Ref{}, errs.New(errs.NotFound, "Widget not found.")
}}

func service(t testing.TB, db *bun.DB, others ...entity.Type) *content.Service {
	n, registry := 0, entity.NewRegistry()
	is.New(t).NoErr(registry.Add(others...))
	kinds := make([]entity.Kind, len(others))
	for i, other := range others {
		kinds[i] = other.Kind
	}
	return content.New(content.Options{
		Store: bunstore.New(dbtest.People(t, db, "jo", "mia", "root")), Files: inLibraries(db),
		Directory: people{"jo", id(77)}, HostKinds: kinds, Registry: registry,
		Now:   func() time.Time { return friday },
		NewID: func() string { n++; return id(n) },
	})
}

var friday = time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC)

// inLibraries keeps files of at most 3 MiB.
func inLibraries(db *bun.DB) *libraries.Files {
	return libraries.New(libraries.Options{Store: librarystore.New(db, content.Library), Blobs: blobstore.New(db),
		Limit: 3 << 20, Now: func() time.Time {
			return friday
		}})
}

// jo is a designer of acme.
func jo(t testing.TB) context.Context {
	return actor.With(t.Context(), actor.Actor{
		Tenant: "acme",
		User:   "jo",
		Teams:  map[string]actor.Role{id(77): actor.Designer},
	})
}

func create(
	t testing.TB, s *content.Service, kind entity.Kind, slug, data string, change ...func(*content.Entity),
) content.Entity {
	t.Helper()
	e := content.Entity{Kind: kind, Name: "Name " + slug, Data: json.RawMessage(data)}
	if slug != "" {
		e.Slug = &slug
	}
	for _, f := range change {
		f(&e)
	}
	e, err := s.Create(jo(t), e)
	is.New(t).NoErr(err)
	return e
}

func typeOf(t testing.TB, s *content.Service, kind entity.Kind) entity.Type {
	t.Helper()
	for _, k := range s.Unchecked().Types() {
		if k.Kind == kind {
			return k
		}
	}
	t.Fatalf("no type %s", kind)
	return entity.Type{}
}

func TestTypes(t *testing.T) {
	is := is.New(t)
	s := service(t, dbtest.SQLite(t), entity.Type{Kind: "report"})
	var commented []string
	for _, k := range s.Unchecked().Types() {
		is.True(k.Kind != "report") // replaced
		is.True(k.Lookup != nil && k.Owned != nil && k.Reassign != nil && k.Transferer != nil)
		_, files := k.Transferer.(entity.FileTransferer)
		is.Equal(files, k.Kind == "library")
		if k.Commented {
			commented = append(commented, string(k.Kind))
		}
	}
	is.Equal(len(s.Unchecked().Types()), 13)
	is.Equal(commented, []string{"datasource", "dataset", "query", "template", "job", "library"})
}

func TestLookup(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open(t))
		e := create(t, s, "report", "sales", "")
		original := e.ID
		draft := create(t, s, "report", "draft", "", func(e *content.Entity) { e.EditingID = &original })
		report := typeOf(t, s, "report")
		want := entity.Ref{Kind: "report", ID: e.ID, Name: "Name sales", OwnerID: "jo"}
		for _, key := range []string{e.ID, strings.ToUpper(e.ID), "jo:sales"} {
			ref, err := report.Lookup(t.Context(), "acme", key)
			is.NoErr(err)
			is.Equal(ref, want)
		}
		ref, err := report.Lookup(t.Context(), "acme", draft.ID)
		is.NoErr(err)
		is.True(ref.Draft)
		for _, key := range []string{
			"jo:draft", "jo:none", "mia:sales", "sales", ":sales", "jo:", "jo", "", "jo:a b", "\xff:sales",
			"\x00:sales", id(99),
		} {
			_, err := report.Lookup(t.Context(), "acme", key)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		_, err = report.Lookup(t.Context(), "evil", e.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	})
}

func TestAccept(t *testing.T) {
	is, s := is.New(t), service(t, dbtest.SQLite(t))
	text := func(s string) *string { return &s }
	big := json.RawMessage(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)
	for _, c := range []struct {
		e    content.Entity
		want string
	}{
		{content.Entity{}, "name must"},
		{content.Entity{Name: " "}, "name must"}, {content.Entity{Name: "a\nb"}, "name must"},
		{content.Entity{Name: strings.Repeat("x", 256)}, "name must"}, {content.Entity{Name: "a\xff"}, "name must"},
		{content.Entity{Name: "x", Slug: text("a b")}, "slug must"},
		{content.Entity{Name: "x", Slug: text(id(1))}, "slug must"},
		{content.Entity{Name: "x", Description: text("\x00")}, "description must"},
		{content.Entity{Name: "x", Source: text(strings.Repeat("x", 1025))}, "source must"},
		{content.Entity{Name: "x", Data: json.RawMessage(`[]`)}, "data must"},
		{content.Entity{Name: "x", Data: json.RawMessage(`{`)}, "data must"},
		{content.Entity{Name: "x", Data: big}, "data must"},
		{content.Entity{Name: "x", EditingID: text("x")}, "editingId must"},
	} {
		c.e.Kind = "report"
		_, err := s.Create(jo(t), c.e)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.HasPrefix(errs.MessageOf(err), c.want))
	}
	e := create(t, s, "report", "", " { \"a\" : [ 1 ] } ", func(e *content.Entity) {
		e.Name, e.Slug, e.Description = " x ", text(""), text(" ")
	})
	is.Equal(e.Name+string(e.Data), `x{"a":[1]}`)
	is.Equal(e.Slug, nil)
	is.Equal(e.Description, nil)
	is.Equal(e.NaturalID(), e.ID)
	member := actor.With(t.Context(), actor.Actor{
		Tenant: "acme",
		User:   "mia",
		Teams:  map[string]actor.Role{"t": actor.Member},
	})
	_, err := s.Create(member, content.Entity{Kind: "report", Name: "x"})
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = s.Create(t.Context(), content.Entity{Kind: "report", Name: "x"})
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

func TestNeeds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		s := service(t, open(t), widget, entity.Type{Kind: "blind"})
		source := create(t, s, "datasource", "", "").ID
		set := create(t, s, "dataset", "", `{"datasourceId": "`+source+`"}`).ID
		system := create(t, s, "dataset", "", "", func(e *content.Entity) { e.System = true }).ID
		draft := create(t, s, "dataset", "", "", func(e *content.Entity) { e.EditingID = &set }).ID
		tag1, tag2 := create(t, s, "tag", "", "").ID, create(t, s, "tag", "", "").ID
		data := fmt.Sprintf(`{"a": [{"b": {"datasetId": %q, "datasetIds": [%q, 7, [%q], {"tagId": %q}]}}], "tagIds": [%q, "x", null], "tag": %q,
			"queryId": %q, "widgetId": "w1", "widgetIds": ["w1", "w2"], "blindId": "x", "unheardId": "x", "datasourceId": [%q], "visualIds": %q, "Id": "x", "Ids": ["x"],
			"templateId": null, "jobId": {"datasourceId": "none"}, "codeId": ""}`, set, system, draft, tag2,
			tag1, source, set, source, set)
		report := create(t, s, "report", "", data).ID
		p := typeOf(t, s, "report").Transferer
		needs, err := p.Needs(t.Context(), "acme", []string{report, id(99)})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{report: {
			{Kind: "dataset", ID: set}, {Kind: "tag", ID: tag1}, {Kind: "tag", ID: tag2}, {Kind: "widget", ID: "w1"},
		}})
		needs, err = typeOf(t, s, "dataset").Transferer.Needs(t.Context(), "acme", []string{set})
		is.NoErr(err)
		is.Equal(needs[set], []entity.Key{{Kind: "datasource", ID: source}})
		needs, err = p.Needs(t.Context(), "evil", []string{report})
		is.NoErr(err)
		is.Equal(len(needs), 0)
	})
}

func TestTransfererRoundTrip(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open(t))
		text := "<b> & \u2028 \x7f"
		for n := range 1203 { // several batches
			create(t, s, "report", fmt.Sprintf("s%d", n), `{"n":"<&>","big":12345678901234567890.10}`,
				func(e *content.Entity) {
					e.Description, e.Source, e.SourceID = &text, &text, &text
				})
		}
		p, ctx := typeOf(t, s, "report").Transferer, t.Context()
		rows := transfertest.Rows(t, p, "acme")
		is.Equal(len(rows), 1203)
		is.Equal(transfertest.Rows(t, p, "acme"), rows)
		actions, warnings, err := p.Import(ctx, "evil", rows, entity.ImportOptions{Rule: entity.Skip, Owner: "eve"})
		is.NoErr(err)
		is.Equal(len(warnings), 0)
		is.Equal(slices.Compact(actions), []entity.ImportAction{entity.Created})
		is.Equal(transfertest.Rows(t, p, "evil"), rows) // the same bytes
		got, err := s.Get(actor.With(ctx, actor.Actor{Tenant: "evil", User: "eve"}), "report", "jo:s7")
		is.NoErr(err)
		want, err := s.Get(jo(t), "report", "jo:s7")
		is.NoErr(err)
		want.Tenant = "evil"
		is.Equal(got, want) // every field
		n, err := p.Remove(ctx, "evil", append(ids(rows), id(99999)))
		is.NoErr(err)
		is.Equal(n, 1203)
		is.Equal(len(transfertest.Rows(t, p, "acme")), 1203)

		for r, err := range p.Export(ctx, "acme", []string{rows[0].ID, id(99999)}) {
			if r.ID == "" {
				is.Equal(errs.CodeOf(err), errs.NotFound)
			}
		}
	})
}

func ids(rows []entity.Row) []string {
	var all []string
	for _, r := range rows {
		all = append(all, r.ID)
	}
	return all
}

func row(n int, text string) entity.Row {
	return entity.Row{Key: entity.Key{Kind: "report", ID: id(n)}, JSON: []byte(text)}
}

func TestImportRules(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open(t))
		p, ctx := typeOf(t, s, "report").Transferer, t.Context()
		land := entity.ImportOptions{Rule: entity.Overwrite, Owner: "jo"}
		get := func(n int) content.Entity {
			e, err := s.Get(jo(t), "report", id(n))
			is.NoErr(err)
			return e
		}
		old := create(t, s, "report", "old", `{"a":1}`)
		is.Equal(old.ID, id(1))
		actions, warnings, err := p.Import(ctx, "acme", []entity.Row{
			row(
				1,
				`{"name": "New", "slug": "new", "ownerId": "`+id(77)+
					`", "data": {}, "createdAt": "2020-01-01T00:00:00Z", "updatedAt": `+
					`"2020-01-01T00:00:00.1234567+01:00"}`,
			),
			row(
				50,
				`{"name": "Ghost", "slug": "old", "ownerId": "ghost", "system": true, "editingId": "`+id(1)+
					`", "tenant": "evil", "id": "x", "NAME": 1}`,
			),
			row(51, `{"name": "Nobody's"}`),
		}, land)
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Updated, entity.Created, entity.Created})
		is.Equal(warnings, []string{"report " + id(50) + ": its owner ghost is not known here; jo owns it now."})
		fresh := get(1)
		is.Equal(
			[]string{fresh.Name, *fresh.Slug, fresh.OwnerID, string(fresh.Data)},
			[]string{"New", "new", id(77), "{}"},
		)
		is.Equal(fresh.CreatedAt, old.CreatedAt) // stays
		is.Equal(fresh.UpdatedAt, time.Date(2019, 12, 31, 23, 0, 0, 123456000, time.UTC))
		ghost := get(50)
		is.Equal(
			[]any{ghost.System, ghost.EditingID == nil, ghost.OwnerID, ghost.Tenant},
			[]any{false, true, "jo", "acme"},
		)

		_, err = s.Unchecked().SetSystem(ctx, "acme", "report", id(51), true)
		is.NoErr(err)
		actions, warnings, err = p.Import(ctx, "acme", []entity.Row{row(51, `{"name": "Taken over"}`)}, land)
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Skipped})
		is.Equal(warnings, []string{"report " + id(51) + " belongs to the system here and stays as it is."})
		is.Equal(get(51).Name, "Nobody's")

		for name, c := range map[string]struct {
			rows []entity.Row
			rule entity.Rule
			code errs.Code
			want string
		}{
			"fail": {
				[]entity.Row{row(60, `{"name": "x"}`), row(1, `{"name": "x"}`)}, entity.Fail, errs.Conflict,
				"report " + id(1) + " exists already.",
			},
			"slug": {
				[]entity.Row{row(60, `{"name": "x"}`), row(61, `{"name": "x", "slug": "old", "ownerId": "jo"}`)},
				entity.Skip, errs.Conflict, "report " + id(61) + ": the slug old belongs to " + id(50) + ".",
			},
			"slug in batch": {
				[]entity.Row{row(60, `{"name": "x", "slug": "s"}`), row(61, `{"name": "x", "slug": "s"}`)},
				entity.Skip, errs.Conflict, "report " + id(61) + ": the slug s belongs to " + id(60) + ".",
			},
			"rule": {
				[]entity.Row{row(60, `{"name": "x"}`)}, "maybe", errs.Invalid,
				"updateRule must be one of skip, overwrite and fail",
			},
			"twice": {
				[]entity.Row{row(60, `{"name": "x"}`), row(60, `{"name": "x"}`)}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": is given twice",
			},
			"kind": {
				[]entity.Row{{Key: entity.Key{Kind: "query", ID: id(60)}, JSON: []byte(`{"name": "x"}`)}},
				entity.Skip, errs.Invalid, "query " + id(60) + ": is not of the kind report",
			},
			"id": {
				[]entity.Row{{Key: entity.Key{Kind: "report", ID: "x"}, JSON: []byte(`{"name": "x"}`)}},
				entity.Skip, errs.Invalid, "report x: the id must be a UUID in lower case",
			},
			"no object": {
				[]entity.Row{row(60, `null`)}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": is not a JSON object",
			},
			"no name": {
				[]entity.Row{row(60, `{}`)}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": name must be 1 to 255 characters without control characters",
			},
			"wrong type": {
				[]entity.Row{row(60, `{"name": ["x"]}`)}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": name must be a string",
			},
			"data": {
				[]entity.Row{row(60, `{"name": "x", "data": 7}`)}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": data must be a JSON object of at most 1048576 bytes",
			},
			"NUL": {
				[]entity.Row{row(60, `{"name": "x\u0000"}`)}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": name must not have NUL characters",
			},
			"broken UTF-8": {
				[]entity.Row{row(60, "{\"name\": \"\xff\"}")}, entity.Skip, errs.Invalid,
				"report " + id(60) + ": is not a JSON object",
			},
			"no time": {
				[]entity.Row{row(60, `{"name": "x", "createdAt": "0001-01-01T00:00:00.0000009Z"}`)},
				entity.Skip, errs.Invalid,
				"report " + id(60) + ": createdAt must be later than 0001-01-01T00:00:00Z",
			},
			"time out of all": {
				[]entity.Row{row(60, `{"name": "x", "createdAt": "9999-12-31T23:59:59-23:59"}`)}, entity.Skip,
				errs.Invalid, "report " + id(60) + ": createdAt must be of the years 1 to 9999",
			},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				_, _, err := p.Import(ctx, "acme", c.rows, entity.ImportOptions{Rule: c.rule, Owner: "jo"})
				is.Equal(errs.CodeOf(err), c.code)
				is.Equal(errs.MessageOf(err), c.want)
				_, err = s.Get(jo(t), "report", id(60))
				is.Equal(errs.CodeOf(err), errs.NotFound) // nothing of it is there
			})
		}
		original := id(1)
		draft := create(t, s, "report", "", "", func(e *content.Entity) { e.EditingID = &original })
		_, _, err = p.Import(ctx, "acme", []entity.Row{{
			Key:  entity.Key{Kind: "report", ID: draft.ID},
			JSON: []byte(`{"name": "x"}`),
		}}, land)
		is.Equal(errs.CodeOf(err), errs.Conflict)

		// Slugs may pass from one to another within an import.
		_, _, err = p.Import(ctx, "acme", []entity.Row{
			row(1, `{"name": "x", "slug": "old", "ownerId": "jo"}`),
			row(50, `{"name": "x", "slug": "new", "ownerId": "jo"}`),
		}, land)
		is.NoErr(err)
		is.Equal(*get(1).Slug+*get(50).Slug, "oldnew")
	})
}

// TestSecrets stay behind in an export, and an import keeps those that the tenant has, in as many
// rows as there are.
func TestSecrets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), service(t, open(t))
		p, ctx := typeOf(t, s, "toolkit").Transferer, t.Context()
		land := entity.ImportOptions{Rule: entity.Overwrite, Owner: "jo"}
		const apps = 70 // more than are read at once
		data := func(n int) string {
			return fmt.Sprintf(
				`{"defn":{"env":{"URL":"u%d","DEBUG":true}},"webhookSecret":"w%d","n":1.50,"mask":"********"}`,
				n, n,
			)
		}
		for n := range apps {
			create(t, s, "toolkit", "", data(n+1))
		}
		rows := transfertest.Rows(t, p, "acme")
		masked := `{"defn":{"env":{"URL":"********","DEBUG":"********"}},"webhookSecret":"********","n":1.50,"mask":"********"}`
		for _, r := range rows {
			is.True(strings.Contains(string(r.JSON), `"data":`+masked+`,`))
		}
		is.Equal(transfertest.Rows(t, p, "acme"), rows)

		_, warnings, err := p.Import(ctx, "acme", rows, land)
		is.NoErr(err)
		is.Equal(len(warnings), 0)
		sums := &entity.Warnings{}
		for range 2 { // made, then overwritten: it has none yet
			_, warnings, err = p.Import(
				ctx, "evil", rows, entity.ImportOptions{Rule: entity.Overwrite, Owner: "eve", Warnings: sums},
			)
			is.NoErr(err)
			is.Equal(len(warnings), 0)
		}
		is.Equal(sums.Warnings(), []string{"420 secrets of 140 toolkit rows did not travel: set them again here."})
		for n := range apps {
			for tenant, want := range map[string]string{
				"acme": data(n + 1),
				"evil": `{"defn":{"env":{}},"n":1.50,"mask":"********"}`,
			} {
				e, err := s.Get(actor.With(ctx, actor.Actor{Tenant: tenant, User: "x"}), "toolkit", id(n+1))
				is.NoErr(err)
				is.Equal(string(e.Data), want)
			}
		}

		// An archive is believed no secret: neither one that is here nor a new one.
		hostile := []entity.Row{
			{
				Key: rows[0].Key,
				JSON: []byte(`{"name": "x", "data": {"webhookSecret": "mine", "defn": {"env": {"URL": ` +
					`"http://evil"}}}}`),
			},
			{
				Key:  entity.Key{Kind: "toolkit", ID: id(99)},
				JSON: []byte(`{"name": "x", "data": {"webhookSecret": "mine"}}`),
			},
		}
		_, warnings, err = p.Import(ctx, "acme", hostile, land)
		is.NoErr(err)
		is.Equal(warnings, []string{
			"1 secret of 1 toolkit row did not travel: set them again here.",
			"1 secret of 1 toolkit row got lost with what was replaced: set them again here.", // DEBUG
			"2 secrets of 1 toolkit row stayed while what is around them changed: check where they go.",
		})
		for n, want := range map[int]string{1: `{"webhookSecret":"w1","defn":{"env":{"URL":"u1"}}}`, 99: `{}`} {
			e, err := s.Get(jo(t), "toolkit", id(n))
			is.NoErr(err)
			is.Equal(string(e.Data), want)
		}
	})
}

// TestStatements: what the service asks of the database.
func TestStatements(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, counter := dbtest.Counted(t, open)
		s := service(t, db)
		e := create(t, s, "report", "a", "")
		p, ctx := typeOf(t, s, "report").Transferer, t.Context()
		rows := []entity.Row{}
		for n := range 700 {
			rows = append(rows, row(1000+n, fmt.Sprintf(`{"name": "x", "slug": "s%d", "ownerId": "jo"}`, n)))
		}
		for name, c := range map[string]struct {
			want int
			call func() error
		}{
			"get":   {1, func() error { _, err := s.Get(jo(t), "report", e.ID); return err }},
			"named": {1, func() error { _, err := s.Get(jo(t), "report", "jo:a"); return err }},
			"list":  {1, func() error { _, err := s.List(jo(t), "report", paging.Query{Limit: 10}); return err }},
			"put": {2, func() error {
				_, err := s.Update(jo(t), "report", e.ID, func(*content.Entity) error { return nil })
				return err
			}},
			"lookup": {1, func() error { _, err := typeOf(t, s, "report").Lookup(ctx, "acme", e.ID); return err }},
			"import": {6, func() error { // for each of two batches: those that exist, their slugs, the rows
				_, _, err := p.Import(ctx, "evil", rows, entity.ImportOptions{Rule: entity.Fail, Owner: "jo"})
				return err
			}},
		} {
			counter.Take()
			is.NoErr(c.call())
			if got := counter.Take(); len(got) != c.want {
				t.Errorf("%s: %d statements, want %d: %q", name, len(got), c.want, got)
			}
		}
	})
}

func read(t testing.TB, r io.ReadCloser, err error) string {
	t.Helper()
	is.New(t).NoErr(err)
	text, err := io.ReadAll(r)
	is.New(t).NoErr(err)
	is.New(t).NoErr(r.Close())
	return string(text)
}

func TestFileTransferer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		s := service(t, db)
		lib := create(t, s, "library", "site", "").ID
		big := strings.Repeat("0123456789abcdef", 1<<17) // two chunks
		for path, content := range map[string]string{"index.html": "<p>", "src/main.js": "x()", "big": big} {
			_, err := s.PutFile(jo(t), "jo:site", entity.File{Path: path}, strings.NewReader(content))
			is.NoErr(err)
		}
		p, ctx := typeOf(t, s, "library").Transferer.(entity.FileTransferer), t.Context()
		_, _, err := p.Import(
			ctx, "evil", transfertest.Rows(t, p, "acme"), entity.ImportOptions{Rule: entity.Fail, Owner: "eve"},
		)
		is.NoErr(err)
		files, err := p.Files(ctx, "acme", lib)
		is.NoErr(err)
		is.Equal(files, []entity.File{
			{Path: "big", ContentType: "application/octet-stream", Size: 2 << 20},
			{Path: "index.html", ContentType: "text/html", Size: 3},
			{Path: "src/main.js", ContentType: "text/javascript", Size: 3},
		})
		for _, f := range files {
			r, err := p.OpenFile(ctx, "acme", lib, f.Path)
			is.NoErr(err)
			is.NoErr(p.PutFile(ctx, "evil", lib, f, r))
			is.NoErr(r.Close())
		}
		got, err := p.Files(ctx, "evil", lib)
		is.NoErr(err)
		is.Equal(got, files)
		r, err := p.OpenFile(ctx, "evil", lib, "big")
		is.True(read(t, r, err) == big)

		is.NoErr(p.KeepFiles(ctx, "evil", lib, []string{"index.html", "none"}))
		got, err = p.Files(ctx, "evil", lib)
		is.NoErr(err)
		is.Equal(got, files[1:2])
		for _, path := range []string{"../x", "/x", "a//b", "", "a\x00", "e\u0301"} {
			is.Equal(
				errs.CodeOf(p.PutFile(ctx, "evil", lib, entity.File{Path: path}, strings.NewReader("x"))),
				errs.Invalid,
			)
			_, err := p.OpenFile(ctx, "evil", lib, path)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		fault := errors.New("fault")
		is.Equal(
			p.PutFile(ctx, "evil", lib, entity.File{Path: "f"}, io.MultiReader(strings.NewReader(big), broken{fault})),
			fault,
		)
		is.Equal(
			errs.CodeOf(p.PutFile(ctx, "evil", lib, entity.File{Path: "f"}, strings.NewReader(big+big))),
			errs.TooLarge,
		)
		is.Equal(
			errs.CodeOf(p.PutFile(ctx, "evil", id(99), entity.File{Path: "f"}, strings.NewReader(big))),
			errs.NotFound,
		)

		n, err := p.Remove(ctx, "evil", []string{lib})
		is.NoErr(err)
		is.Equal(n, 1)
		is.NoErr(s.DeleteFile(jo(t), lib, "big"))
		is.NoErr(s.Delete(jo(t), "library", lib))
		at := friday
		later := libraries.New(libraries.Options{Store: librarystore.New(db, content.Library),
			Blobs: blobstore.New(db), Now: func() time.Time {
				return at
			}})
		for _, tenant := range []string{"acme", "evil"} { // no bytes are left, of the failed ones neither
			for range 2 {
				at = at.Add(time.Hour)
				_, err := later.Hooks().Sweep(ctx, tenant)
				is.NoErr(err)
			}
			is.Equal(blobs(t, db, tenant), 0)
		}
	})
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// TestFilesOfNobodyElse: only who may change a library writes its files.
func TestFilesOfNobodyElse(t *testing.T) {
	is := is.New(t)
	s := service(t, dbtest.SQLite(t))
	lib := create(t, s, "library", "site", "").ID
	mia := actor.With(t.Context(), actor.Actor{
		Tenant: "acme",
		User:   "mia",
		Teams:  map[string]actor.Role{"t": actor.Admin},
	})
	_, err := s.PutFile(mia, lib, entity.File{Path: "a"}, strings.NewReader("x"))
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = s.PutFile(jo(t), lib, entity.File{Path: "a"}, strings.NewReader("x"))
	is.NoErr(err)
	is.Equal(errs.CodeOf(s.DeleteFile(mia, lib, "a")), errs.Forbidden)
	_, r, err := s.OpenFile(mia, lib, "a")
	is.Equal(read(t, r, err), "x")
	eve := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "eve", Superuser: true})
	_, err = s.PutFile(eve, lib, entity.File{Path: "a"}, strings.NewReader("x"))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, _, err = s.OpenFile(eve, lib, "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Files(eve, lib, paging.Query{Limit: 1})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Unchecked().SetSystem(t.Context(), "acme", "library", lib, true)
	is.NoErr(err)
	_, err = s.PutFile(jo(t), lib, entity.File{Path: "a"}, strings.NewReader("x"))
	is.Equal(errs.CodeOf(err), errs.Forbidden)
}

// blobs counts what is stored of files.
func blobs(t testing.TB, db *bun.DB, tenant string) (n int) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, tenant)
	is.New(t).NoErr(c.One(ctx, "",
		`SELECT (SELECT count(*) FROM tc_blobs WHERE tenant_id = $1) + (SELECT count(*) FROM tc_blob_chunks `+
			`WHERE tenant_id = $1)`,
		[]any{tenant}, &n))
	return n
}
