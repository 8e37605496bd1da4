package bunstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Principals returns the users that testStore needs in the tenants acme and evil.
func Principals() []string { return []string{"jo", "kim"} }

var at = time.Date(2026, 11, 20, 20, 31, 0, 123456000, time.UTC)

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// assistant returns an assistant with a value in every field.
func assistant(n int, owner, slug string) assistants.Assistant {
	text, folder := "text", id(900)
	return assistants.Assistant{
		Tenant: "acme", ID: id(n), Name: fmt.Sprint("Name ", n), Slug: &slug,
		Description: &text, Instructions: "Be kind.", Welcome: &text, Dispatcher: true,
		Suggestions: []string{"What?"}, ModelID: &text, Embedded: true, Data: json.RawMessage(`{"a":1}`),
		Skills: []assistants.Skill{{Type: "query", Name: "sales", Config: json.RawMessage(`{}`)}},
		Datasets: []assistants.Dataset{{
			DatasetID: id(800),
			Mode:      assistants.Subset,
			Filter:    json.RawMessage(`{"a":1}`),
		}},
		References: []assistants.Reference{{EntityType: "file", EntityID: id(801), Label: "File"}},
		OwnerID:    owner, Sealed: "sealed", SecretsAt: &at,
		LibraryID: id(n + 1000), FolderID: &folder, CreatedAt: at, UpdatedAt: at.Add(time.Duration(n) * time.Second),
	}
}

// testStore tests the stores that open returns, each with the users of Principals.
func testStore(t *testing.T, open func(t *testing.T) assistants.Store) {
	for name, test := range map[string]func(*testing.T, *is.I, assistants.Store){
		"round trip": roundTrip, "pages": pages, "drafts": draftsOf,
		"owners": owners, "imports": imports, "using": using, "tenants": tenants, "search": search,
	} {
		t.Run(name, func(t *testing.T) { test(t, is.New(t), open(t)) })
	}
}

func roundTrip(t *testing.T, is *is.I, s assistants.Store) {
	ctx, a := t.Context(), assistant(1, "jo", "one")
	is.NoErr(s.Insert(ctx, "acme", a))
	for _, at := range []drafts.Lookup{{ID: a.ID}, {Library: a.LibraryID}, {Owner: "jo", Slug: "one"}} {
		got, err := s.Get(ctx, "acme", at)
		is.NoErr(err)
		is.Equal(got, a)
		head, err := s.Head(ctx, "acme", at)
		is.NoErr(err)
		is.Equal(head.Instructions+string(head.Data), "")
		is.Equal(head.Datasets, a.Datasets)
	}
	got, err := s.Update(ctx, "acme", drafts.Lookup{ID: a.ID}, func(a *assistants.Assistant) error {
		a.Instructions, a.Skills, a.Welcome, a.Shared, a.LibraryID = "Be brief.", nil, nil, true, id(5)
		return nil
	})
	is.NoErr(err)
	a.Instructions, a.Skills, a.Welcome = "Be brief.", nil, nil // other fields are reset
	is.Equal(got.Version(), a.Version())
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", assistant(2, "jo", "one"))), errs.Conflict)
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", assistant(2, "nobody", "two"))), errs.Forbidden)
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", assistant(2, shares.Everyone, "two"))), errs.Forbidden)
	gone, err := s.Remove(ctx, "acme", []string{a.ID})
	is.NoErr(err)
	is.Equal(len(gone), 1)
	_, err = s.Get(ctx, "acme", drafts.Lookup{ID: a.ID})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Get(ctx, "acme", drafts.Lookup{ID: a.ID, Deleted: true})
	is.Equal(errs.CodeOf(err), errs.NotFound) // nothing is stored
}

func pages(t *testing.T, is *is.I, s assistants.Store) {
	ctx := t.Context()
	for n := range 6 {
		is.NoErr(s.Insert(ctx, "acme", assistant(n, []string{"jo", "kim"}[n%2], fmt.Sprint("slug-", n))))
	}
	_, err := s.Shares().Put(
		ctx, "acme", id(1), shares.Share{PrincipalID: "jo", Level: shares.Use, CreatedAt: at, UpdatedAt: at},
	)
	is.NoErr(err)
	is.NoErr(s.SetShared(ctx, "acme", []string{id(1)}))
	sees := func(v drafts.Viewer, q paging.Query) (names []string, total int) {
		page, err := s.Page(ctx, "acme", v, q)
		is.NoErr(err)
		for _, a := range page.Rows {
			names = append(names, a.Name)
		}
		return names, page.Total
	}
	jo := drafts.Viewer{Principals: []string{"jo", "*"}}
	names, total := sees(jo, paging.Query{Limit: 10})
	is.Equal(names, []string{"Name 0", "Name 1", "Name 2", "Name 4"})
	is.Equal(total, 4)
	names, _ = sees(jo, paging.Query{Limit: 2, Start: 1, Sort: "-updatedAt"})
	is.Equal(names, []string{"Name 2", "Name 1"})
	names, _ = sees(jo, paging.Query{Limit: 10, Q: "slug-4"})
	is.Equal(names, []string{"Name 4"})
	_, total = sees(drafts.Viewer{All: true}, paging.Query{Limit: 1})
	is.Equal(total, 6)
	_, total = sees(drafts.Viewer{}, paging.Query{Limit: 1})
	is.Equal(total, 0)
	n, err := s.Count(ctx, "acme")
	is.NoErr(err)
	is.Equal(n, 6)
}

func draftsOf(t *testing.T, is *is.I, s assistants.Store) {
	ctx, a := t.Context(), assistant(1, "jo", "one")
	is.NoErr(s.Insert(ctx, "acme", a))
	draft := func(n int) assistants.Assistant {
		d, session := assistant(n, "jo", "one"), "session"
		d.EditingID, d.Base, d.Lock = &a.ID, "base", drafts.Lock{
			Session:     &session,
			HeartbeatAt: &at,
			LockedBy:    &a.OwnerID,
		}
		return d
	}
	is.NoErr(s.Insert(ctx, "acme", draft(2)))
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", draft(3))), errs.Conflict) // the assistant has a draft
	got, err := s.Draft(ctx, "acme", a.ID)
	is.NoErr(err)
	is.Equal(got, draft(2))
	listed, err := s.Drafts(ctx, "acme", drafts.Viewer{Principals: []string{"jo"}})
	is.NoErr(err)
	is.Equal(len(listed), 1)
	listed, err = s.Drafts(ctx, "acme", drafts.Viewer{Principals: []string{"kim"}})
	is.NoErr(err)
	is.Equal(len(listed), 0)
	have, err := s.Drafted(ctx, "acme", []string{a.ID, id(2)})
	is.NoErr(err)
	is.Equal(have, map[string]bool{a.ID: true})
	page, err := s.Page(ctx, "acme", drafts.Viewer{All: true}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total, 1)
	gone, err := s.Remove(ctx, "acme", []string{a.ID})
	is.NoErr(err)
	is.Equal(len(gone), 2) // the draft is removed, too
}

func owners(t *testing.T, is *is.I, s assistants.Store) {
	ctx := t.Context()
	is.NoErr(s.Insert(ctx, "acme", assistant(1, "jo", "one")))
	is.NoErr(s.Insert(ctx, "acme", assistant(2, "kim", "one")))
	moved, err := s.Reassign(ctx, "acme", "jo", "kim", at)
	is.NoErr(err)
	is.Equal(*moved[0].Slug, "one-2")
	all, err := s.Owners(ctx, "acme")
	is.NoErr(err)
	is.Equal(all, []string{"kim"})
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"kim": "kimberly"}))
	n, err := s.Owned(ctx, "acme", "kimberly")
	is.NoErr(err)
	is.Equal(n, 2)
}

func imports(t *testing.T, is *is.I, s assistants.Store) {
	ctx, a, b := t.Context(), assistant(1, "jo", "one"), assistant(2, "jo", "two")
	is.NoErr(s.PutAll(ctx, "acme", []assistants.Assistant{a, b}, nil))
	*a.Slug, *b.Slug, a.Name = "two", "one", "Other" // they exchange slugs
	is.NoErr(s.PutAll(ctx, "acme", []assistants.Assistant{a, b}, []string{a.ID, b.ID}))
	some, err := s.Slugs(ctx, "acme", []drafts.Lookup{{Owner: "jo", Slug: "two"}})
	is.NoErr(err)
	is.Equal(some[0].ID, a.ID)
	ids, err := s.IDs(ctx, "acme")
	is.NoErr(err)
	is.Equal(ids, []string{a.ID, b.ID})
	some, err = s.Some(ctx, "acme", []string{a.ID})
	is.NoErr(err)
	is.Equal(some, []assistants.Assistant{a})
	libraries, err := s.Libraries(ctx, "acme", []string{a.LibraryID, id(7)})
	is.NoErr(err)
	is.Equal(libraries, map[string]bool{a.LibraryID: true})
}

func using(t *testing.T, is *is.I, s assistants.Store) {
	ctx, without := t.Context(), assistant(2, "jo", "two")
	without.Datasets, without.References = nil, nil
	is.NoErr(s.PutAll(ctx, "acme", []assistants.Assistant{assistant(1, "jo", "one"), without}, nil))
	for _, k := range []entity.Key{{Kind: "dataset", ID: id(800)}, {Kind: "file", ID: id(801)}} {
		ids, err := s.Using(ctx, "acme", []entity.Key{k})
		is.NoErr(err)
		is.Equal(ids, []string{id(1)})
	}
	ids, err := s.Using(ctx, "acme", []entity.Key{{Kind: "report", ID: id(801)}})
	is.NoErr(err)
	is.Equal(len(ids), 0)
}

func tenants(t *testing.T, is *is.I, s assistants.Store) {
	ctx, a := t.Context(), assistant(1, "jo", "one")
	is.NoErr(s.Insert(ctx, "acme", a))
	_, err := s.Get(ctx, "evil", drafts.Lookup{ID: a.ID})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Update(ctx, "evil", drafts.Lookup{ID: a.ID}, func(*assistants.Assistant) error { return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	gone, err := s.Remove(ctx, "evil", []string{a.ID})
	is.NoErr(err)
	is.Equal(len(gone), 0)
	page, err := s.Page(ctx, "evil", drafts.Viewer{All: true}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total, 0)
	failed := fmt.Errorf("no")
	is.Equal(s.InTx(ctx, func(ctx context.Context) error {
		if _, err := s.Remove(ctx, "acme", []string{a.ID}); err != nil {
			return err
		}
		return failed
	}), failed)
	_, err = s.Get(ctx, "acme", drafts.Lookup{ID: a.ID})
	is.NoErr(err) // the transaction was rolled back
}
