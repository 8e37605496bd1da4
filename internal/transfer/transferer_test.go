package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/paging"
)

type item struct {
	Name string          `json:"name"`
	A    json.RawMessage `json:"a"`
	Note json.RawMessage `json:"note"` // whose members the kind defines
	B    json.RawMessage `json:"b"`
}

func (p *item) free() map[string]*json.RawMessage {
	return map[string]*json.RawMessage{"a": &p.A, "b": &p.B}
}

// TestExportIsAsEncodingJSONWrites has free JSON that looks like columns, and columns that look
// like free JSON.
func TestExportIsAsEncodingJSONWrites(t *testing.T) {
	is := is.New(t)
	for _, p := range []item{
		{"plain", json.RawMessage(`{"a":1}`), nil, json.RawMessage(`[1,"x"]`)},
		{
			`","b":null,"a":null <&>`, json.RawMessage(`{"b":null,"name":"n"}`),
			json.RawMessage(`{"a":null,"b":null}`), json.RawMessage(`"a\":null"`),
		},
		{"none", nil, nil, nil},
		{"one", nil, json.RawMessage(`{}`), json.RawMessage(`{"x":{"a":null}}`)},
		{"", json.RawMessage(`1`), json.RawMessage(`null`), json.RawMessage(`null`)},
	} {
		transferer := transfer.Transferer[item]{
			Kind: "thing", ID: func(p item) string { return p.Name },
			Some: func(context.Context, string, []string) ([]item, error) { return []item{p}, nil },
			Free: (*item).free,
			Row:  func(p item) any { return p },
		}
		for row, err := range transferer.Export(t.Context(), "acme", []string{p.Name}) {
			is.NoErr(err)
			var want bytes.Buffer
			e := json.NewEncoder(&want)
			e.SetEscapeHTML(false)
			is.NoErr(e.Encode(p))
			is.Equal(string(row.JSON)+"\n", want.String())
			var got item
			is.NoErr(json.Unmarshal(row.JSON, &got))
			is.Equal(got.Name, p.Name)
			for _, part := range [][2]json.RawMessage{{got.A, p.A}, {got.Note, p.Note}, {got.B, p.B}} {
				if part[1] == nil {
					part[1] = json.RawMessage("null")
				}
				is.Equal(string(part[0]), string(part[1]))
			}
		}
	}
}

// TestLargeEntities: large entities are read few at a time, in any order. All are exported in the
// requested order, and missing ones are noticed.
func TestLargeEntities(t *testing.T) {
	is, most := is.New(t), 0
	all := []string{"a", "b", "c", "d", "e"}
	for _, order := range []func(a, b string) int{strings.Compare, func(a, b string) int {
		return strings.Compare(b, a)
	}} {
		transferer := transfer.Transferer[item]{
			Kind: "thing", ID: func(p item) string { return p.Name }, Row: func(p item) any { return p },
			Some: func(ctx context.Context, _ string, ids []string) (some []item, err error) {
				meter := paging.BatchMeter(ctx)
				for _, id := range slices.SortedFunc(slices.Values(ids), order) {
					if id == "gone" {
						continue
					}
					some = append(some, item{Name: id})
					if full, _ := meter.Add(700 << 10); full {
						break
					}
				}
				most = max(most, len(some))
				return some, nil
			},
		}
		exported := func(ids []string) (names []string, failure error) {
			for row, err := range transferer.Export(t.Context(), "acme", ids) {
				if err != nil {
					return names, err
				}
				names = append(names, row.ID)
			}
			return names, nil
		}
		names, err := exported(all)
		is.NoErr(err)
		is.Equal(names, all)
		names, err = exported([]string{"a", "b", "gone", "d"})
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(names, []string{"a", "b"})
		needs, err := transferer.Needs(t.Context(), "acme", append([]string{"gone"}, all...))
		is.NoErr(err)
		is.Equal(slices.Sorted(maps.Keys(needs)), all)
	}
	is.Equal(most, 2)
}

// TestSecretsThatMove: an import warns of secrets that are kept while the JSON around them changes.
func TestSecretsThatMove(t *testing.T) {
	is := is.New(t)
	ours := item{
		Name: "p",
		A:    json.RawMessage(`{"host":"a","password":"x"}`),
		B:    json.RawMessage(`{"env":{"A":"y","B":"z"},"n":1}`),
	}
	transferer := transfer.Transferer[item]{
		Kind: "thing", ID: func(p item) string { return p.Name },
		Some: func(context.Context, string, []string) ([]item, error) { return []item{ours}, nil },
		Free: (*item).free,
		Read: func(_ string, r entity.Row) (p item, err error) { return p, json.Unmarshal(r.JSON, &p) },
		Put:  func(context.Context, *transfer.Batch[item]) error { return nil },
		InTx: func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) },
	}
	const stayed = "%s of 1 thing row stayed while what is around them changed: check where they go."
	lost := "1 secret of 1 thing row got lost with what was replaced: set them again here."
	for row, want := range map[string][]string{
		`{"name":"p","a":{"host":"a","password":"*"},"b":{"env":{"A":"*","B":"*"},"n":1}}`: nil,
		`{"name":"p","a":{"host":"b","password":"*"},"b":{"env":{"A":"*","B":"*"},"n":1}}`: {fmt.Sprintf(stayed, "1 secret")},
		`{"name":"p","a":{"host":"b","password":"*"},"b":{"env":{"A":"*","B":"*"},"n":2}}`: {fmt.Sprintf(stayed, "3 secrets")},
		`{"name":"p","a":{"host":"b"},"b":{"env":{"A":"*","B":"*"},"n":1}}`:                {lost}, // none was kept
		// and that is all that changed
		`{"name":"p","a":{"host":"a","password":"*"},"b":{"env":{"A":"*"},"n":1}}`: {lost},
	} {
		_, warnings, err := transferer.Import(t.Context(), "acme", []entity.Row{{
			Key:  entity.Key{Kind: "thing", ID: "p"},
			JSON: []byte(row),
		}}, entity.ImportOptions{Rule: entity.Overwrite})
		is.NoErr(err)
		is.Equal(warnings, want)
	}
}

// TestSecretsOfAnotherTenantsDeploy: secrets are kept only where the JSON is otherwise equal.
func TestSecretsOfAnotherTenantsDeploy(t *testing.T) {
	is := is.New(t)
	var put string
	transferer := transfer.Transferer[item]{
		Kind: "thing", ID: func(p item) string { return p.Name },
		Some: func(context.Context, string, []string) ([]item, error) {
			return []item{{
				Name: "p",
				A:    json.RawMessage(`{"host":"good","password":"x","env":{"A":"y"}}`),
				B:    json.RawMessage(`{"pin":"z"}`),
			}}, nil
		},
		Free: (*item).free,
		Read: func(_ string, r entity.Row) (p item, err error) { return p, json.Unmarshal(r.JSON, &p) },
		Put: func(_ context.Context, b *transfer.Batch[item]) error {
			put = string(b.Write[0].A) + string(b.Write[0].B)
			return nil
		},
		InTx: func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) },
	}
	removed := []string{"2 secrets of 1 thing row got removed, since what is around them changed: set them again here."}
	for _, c := range []struct {
		a, put   string
		warnings []string
	}{
		{
			`{"env":{"A":"*"},"host":"good","password":"*"}`,
			`{"env":{"A":"y"},"host":"good","password":"x"}{"pin":"z"}`, nil,
		},
		{`{"host":"evil","password":"*","env":{"A":"*"}}`, `{"host":"evil","env":{}}{"pin":"z"}`, removed},
		{
			`{"host":"good","password":"*","env":{"A":"*"},"host":"evil"}`,
			`{"host":"good","env":{},"host":"evil"}{"pin":"z"}`, removed,
		},
		{`{"host":"good","env":{"A":"*"}}`, `{"host":"good","env":{}}{"pin":"z"}`, []string{
			"1 secret of 1 thing row got lost with what was replaced: set them again here.",
			"1 secret of 1 thing row got removed, since what is around them changed: set them again here.",
		}},
	} {
		row := entity.Row{
			Key:  entity.Key{Kind: "thing", ID: "p"},
			JSON: []byte(`{"name":"p","a":` + c.a + `,"b":{"pin":"*"}}`),
		}
		_, warnings, err := transferer.Import(
			t.Context(), "acme", []entity.Row{row},
			entity.ImportOptions{Rule: entity.Overwrite, CrossTenant: true},
		)
		is.NoErr(err)
		is.Equal(put, c.put)
		is.Equal(warnings, c.warnings)
	}
}

// TestWhySaysItOnce: the message is not repeated, and the cause is kept for the log.
func TestWhySaysItOnce(t *testing.T) {
	is, k, cause := is.New(t), entity.Key{Kind: "thing", ID: "p"}, errors.New("cause")
	is.Equal(transfer.Why(k, errs.New(errs.Invalid, "name must be short")).Error(), "thing p: name must be short")
	err := transfer.Why(k, fmt.Errorf("reading: %w", errs.Wrap(errs.Invalid, cause, "name must be short")))
	is.Equal(err.Error(), "thing p: name must be short: cause")
	is.True(errors.Is(err, cause))
	is.Equal(transfer.Why(k, cause), cause)
	is.Equal(transfer.Why(k, nil), nil)
}

func TestExportMasksSecrets(t *testing.T) {
	is := is.New(t)
	transferer := transfer.Transferer[item]{
		Kind: "thing", ID: func(p item) string { return p.Name },
		Some: func(context.Context, string, []string) ([]item, error) {
			return []item{{Name: "p", A: json.RawMessage(`{"password":"x"}`), B: json.RawMessage(`{"password":`)}}, nil
		},
		Free: (*item).free,
		Row:  func(p item) any { return p },
	}
	for row, err := range transferer.Export(t.Context(), "acme", []string{"p"}) {
		is.NoErr(err)
		is.Equal(string(row.JSON), `{"name":"p","a":{"password":"********"},"note":null,"b":null}`)
	}
}
