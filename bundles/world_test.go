package bundles_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// world is the whole service over a database with the tenants acme and evil, whose superusers are
// admin and eve. evil lets acme deploy into it, and both know the user jo.
type world struct {
	*tenantcontent.App
	Bundles compared
	db      *bun.DB
}

func newWorld(t testing.TB, db *bun.DB, change ...func(*tenantcontent.Config)) *world {
	t.Helper()
	is := is.New(t)
	w := opened(t, db, change...)
	cheap := principals.New(principals.Options{
		Store: bunstore.New(db),
		Cost:  principals.Cost{Memory: 8, Time: 1, Threads: 1},
	})
	for tenant, super := range map[string]string{"acme": "admin", "evil": "eve"} {
		_, err := cheap.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: tenant, Username: super, Password: "open sesame",
		})
		is.NoErr(err)
		_, err = w.Tenants.Update(w.as(t, tenant), func(s *tenants.Tenant) error { s.Settings.AI = true; return nil })
		is.NoErr(err)
		_, err = cheap.CreateUser(w.as(t, tenant), principals.User{Username: "jo", Enabled: true}, "jo has a secret")
		is.NoErr(err)
	}
	_, err := w.Tenants.Update(w.as(t, "evil"), func(s *tenants.Tenant) error {
		s.Settings.DeployFrom = tenants.Sources("acme")
		return nil
	})
	is.NoErr(err)
	return w
}

// opened is the service over a database that may have been used before.
func opened(t testing.TB, db *bun.DB, change ...func(*tenantcontent.Config)) *world {
	t.Helper()
	c := tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: tenantcontent.NewSecretKey(),
	}
	for _, f := range change {
		f(&c)
	}
	app, err := tenantcontent.Open(c)
	is.New(t).NoErr(err)
	return &world{App: app, Bundles: compared{app.Bundles, t}, db: db}
}

func each(t *testing.T, test func(t *testing.T, w *world)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) { test(t, newWorld(t, open(t))) })
}

// as is the context of a tenant's superuser.
func (w *world) as(t testing.TB, tenant string) context.Context {
	return actor.With(t.Context(), actor.Actor{
		Tenant:    tenant,
		User:      map[string]string{"acme": "admin", "evil": "eve"}[tenant],
		Superuser: true,
		AI:        true,
	})
}

// make adds an entity of a ready kind that jo owns.
func (w *world) make(t testing.TB, tenant string, kind entity.Kind, name, data string) string {
	t.Helper()
	ctx := actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "jo", Superuser: true, AI: true})
	named := slug.Of(name, "x")
	switch kind {
	case assistants.Kind:
		var needs struct{ DatasetID string }
		is.New(t).NoErr(json.Unmarshal([]byte(data), &needs))
		as := assistants.Assistant{Name: name, Slug: &named, Data: json.RawMessage(data)}
		if needs.DatasetID != "" {
			as.Datasets = []assistants.Dataset{{DatasetID: needs.DatasetID, Mode: assistants.Full}}
		}
		made, err := w.Assistants.Create(ctx, as)
		is.New(t).NoErr(err)
		return made.ID
	case apps.Kind:
		app, err := w.Apps.Create(ctx, apps.App{
			Type: apps.Report,
			Name: name,
			Slug: &named,
			Defn: json.RawMessage(data),
		})
		is.New(t).NoErr(err)
		return app.ID
	}
	e, err := w.Content.Create(ctx, content.Entity{Kind: kind, Name: name, Slug: &named, Data: json.RawMessage(data)})
	is.New(t).NoErr(err)
	return e.ID
}

// bundle adds a bundle of entities, each "type id".
func (w *world) bundle(t testing.TB, name string, entries ...string) bundles.Bundle {
	t.Helper()
	is, ctx := is.New(t), w.as(t, "acme")
	b, err := w.Bundles.Create(ctx, bundles.Bundle{Name: name})
	is.NoErr(err)
	for _, e := range entries {
		kind, id, _ := strings.Cut(e, " ")
		_, err := w.Bundles.CreateEntry(ctx, b.ID, bundles.Entry{Type: kind, EntityID: id})
		is.NoErr(err)
	}
	return b
}

// everything fills a tenant with an entity of each kind, one of which needs others, and gives
// entries of all types.
func (w *world) everything(t testing.TB, tenant string) []string {
	t.Helper()
	is, ctx := is.New(t), w.as(t, tenant)
	source := w.make(t, tenant, "datasource", "Warehouse", `{}`)
	set := w.make(t, tenant, "dataset", "Sales", `{"datasourceId": "`+source+`"}`)
	entries := []string{"global ", "user jo"}
	team, err := w.Principals.CreateTeam(ctx, principals.Team{Name: "Design"})
	is.NoErr(err)
	_, err = w.Principals.PutMember(ctx, team.ID, "jo", actor.Designer)
	is.NoErr(err)
	entries = append(entries, "team "+team.ID)
	drivers, err := w.Bundles.Drivers(ctx)
	is.NoErr(err)
	for _, d := range drivers {
		switch d.ID {
		case "global", "user", "team", "datasource", "dataset":
			continue
		}
		kind := entity.Kind(strings.Replace(d.ID, "tagged", "tag", 1))
		entries = append(
			entries,
			d.ID+" "+w.make(t, tenant, kind, "The "+d.ID, `{"datasetId": "`+set+`", "n": [1, {"b": 1, "a": null}]}`),
		)
	}
	library := strings.Fields(entries[slices.IndexFunc(entries, func(e string) bool {
		return strings.HasPrefix(e, "library")
	})])[1]
	for path, content := range map[string]string{
		"README.md":  "# Hello",
		"src/ü é.js": strings.Repeat("x", 3<<20),
		"empty":      "",
	} {
		_, err := w.Content.PutFile(ctx, library, entity.File{Path: path}, strings.NewReader(content))
		is.NoErr(err)
	}
	for _, key := range []string{"Red", "red", "brand/primary 100%", ".."} { // twins by case
		_, err = w.Colors.Put(ctx, key, "#ff0000")
		is.NoErr(err)
	}
	jo := actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "jo", AI: true})
	_, err = w.AIInstructions.Create(jo, aiinstr.Instruction{Slug: "tone", Content: "Be kind. ${brief}"})
	is.NoErr(err)
	_, err = w.AIInstructions.Create(jo, aiinstr.Instruction{Slug: "brief", Content: "Be brief. ${tone}"})
	is.NoErr(err)
	return entries
}

// export is the archive of a bundle, or of entries "type id" when it has none.
func (w *world) export(t testing.TB, tenant, bundle string, entries ...string) []byte {
	t.Helper()
	is, ctx := is.New(t), w.as(t, tenant)
	var e *bundles.Export
	var err error
	if bundle != "" {
		e, err = w.Bundles.Export(ctx, bundle)
	} else {
		var m bundles.Manifest
		for _, e := range entries {
			kind, id, _ := strings.Cut(e, " ")
			m.Entries = append(m.Entries, bundles.Entry{Type: kind, EntityID: id})
		}
		e, err = w.Bundles.ExportManifest(ctx, m)
	}
	is.NoErr(err)
	var b bytes.Buffer
	is.NoErr(e.Write(ctx, &b))
	return b.Bytes()
}

// unpacked is what an archive has, by kind, id and path; its header is apart.
func unpacked(t testing.TB, file []byte) (archive.Header, map[string]string) {
	t.Helper()
	is := is.New(t)
	r, err := archive.NewReader(bytes.NewReader(file), archive.Limits{})
	is.NoErr(err)
	all := map[string]string{}
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Header(), all
		}
		is.NoErr(err)
		name, content := fmt.Sprintf("%s %s", m.Kind, m.ID), m.JSON
		if m.File != nil {
			name = "file " + m.ID + " " + m.File.Path + " " + m.File.ContentType
			content, err = io.ReadAll(r)
			is.NoErr(err)
		}
		all[name] = string(content)
	}
}

// packed makes an archive of rows "kind id" to JSON, in the order of an export.
func packed(t testing.TB, rows map[string]string, counts map[entity.Kind]int) []byte {
	t.Helper()
	return packedBy(t, bundles.Order(), rows, counts)
}

// packedBy makes an archive whose kinds come in an order, others after these.
func packedBy(t testing.TB, order []string, rows map[string]string, counts map[entity.Kind]int) []byte {
	t.Helper()
	is := is.New(t)
	h := archive.Header{Tenant: "acme", Bundle: archive.Bundle{Name: "made"}, Counts: map[entity.Kind]int{}}
	place := func(name string) int {
		kind, _, _ := strings.Cut(name, " ")
		if at := slices.Index(order, kind); at >= 0 {
			return at
		}
		return len(order)
	}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	for _, name := range names {
		if kind, _, _ := strings.Cut(name, " "); kind != "file" {
			h.Counts[entity.Kind(kind)]++
		}
	}
	maps.Copy(h.Counts, counts)
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, h, archive.Limits{})
	is.NoErr(err)
	for _, pass := range []bool{false, true} {
		for _, name := range names {
			kind, id, _ := strings.Cut(name, " ")
			switch {
			case (kind == "file") != pass:
			case pass:
				id, path, _ := strings.Cut(id, " ")
				is.NoErr(w.File(
					id, entity.File{Path: path, Size: int64(len(rows[name]))}, strings.NewReader(rows[name]),
				))
			default:
				is.NoErr(w.Row(entity.Row{Key: entity.Key{Kind: entity.Kind(kind), ID: id}, JSON: []byte(rows[name])}))
			}
		}
	}
	is.NoErr(w.Close())
	return b.Bytes()
}

// dump is all that a tenant has of content, as text: what every transferer exports, users' rows,
// and the number of blobs.
func (w *world) dump(t testing.TB, tenant string) string {
	t.Helper()
	is := is.New(t)
	var lines []string
	ctx, c := bunx.For(t.Context(), w.db, tenant)
	for table, columns := range map[string]string{
		"tc_entities": "kind || id || name || owner_id || data",
		"tc_colors":   "key || color", "tc_ai_instructions": "id || slug || content || owner_id",
		"tc_users": "username || domain || coalesce(display_name, '') || coalesce(password_hash, '') || " +
			"cast(superuser as text)",
		"tc_teams":         "id || name || slug",
		"tc_memberships":   "team_id || username || cast(role as text)",
		"tc_library_files": "library_id || path || cast(size as text)",
		"tc_deployments":   "source_tenant || bundle_id || kind || entity_id",
		"tc_blobs":         "cast(size as text)", "tc_downloads": "username || filename",
	} {
		rows, err := c.Rows(ctx, "SELECT "+columns+" FROM "+table+" WHERE tenant_id = $1", tenant)
		is.NoErr(err)
		for rows.Next() {
			var line string
			is.NoErr(rows.Scan(&line))
			lines = append(lines, table+" "+line)
		}
		is.NoErr(rows.Err())
		is.NoErr(rows.Close())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
