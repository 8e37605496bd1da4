package transfertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// maxRow is the default limit of a row in an archive, in bytes.
const maxRow = 4 << 20

// Travels moves an entity into another tenant, which may have it, over itself, and back to where it
// was removed, as a restore and its undoing do. The tenant's own entity does not change by a byte.
func Travels(ctx context.Context, t is.T, p entity.Transferer, from, to, id string) {
	is := is.New(t)
	export := func(tenant string) (rows []entity.Row) {
		for r, err := range p.Export(ctx, tenant, []string{id}) {
			is.NoErr(err)
			rows = append(rows, r)
		}
		return rows
	}
	land := func(tenant string, rows []entity.Row, want ...entity.ImportAction) []string {
		actions, warnings, err := p.Import(ctx, tenant, rows, entity.ImportOptions{Rule: entity.Overwrite, Owner: "jo"})
		is.NoErr(err) // the export can be imported
		is.Equal(len(actions), 1)
		is.True(slices.Contains(want, actions[0]))
		return warnings
	}
	rows := export(from)
	is.True(len(rows[0].JSON) <= maxRow)
	land(to, rows, entity.Created, entity.Updated)
	is.Equal(len(land(from, rows, entity.Updated)), 0)
	is.Equal(export(from), rows)
	_, err := p.Remove(ctx, from, []string{id})
	is.NoErr(err)
	land(from, rows, entity.Created)
}

// Free draws free JSON, with secrets and without.
func Free() *rapid.Generator[json.RawMessage] {
	name := rapid.SampledFrom(
		strings.Fields("name key id value default password apiTokens pin privateKeyPem env extraEnv nodeEnv a b"),
	)
	text := rapid.OneOf(name, rapid.SampledFrom([]string{
		"", "A=1", "x y", entity.Mask,
	}), rapid.StringMatching("[^\\x00]{0,8}"))
	leaf := rapid.OneOf(rapid.Map(text, func(s string) any {
		return s
	}), rapid.Map(rapid.SampledFrom([]any{nil, true, false, 0, -1.5}), func(v any) any { return v }))
	all := leaf
	for range 4 {
		inner := all
		all = rapid.OneOf(leaf, rapid.Map(rapid.SliceOfN(inner, 0, 3), func(v []any) any { return v }),
			rapid.Map(rapid.MapOfN(name, inner, 0, 4), func(v map[string]any) any { return v }))
	}
	return rapid.Map(rapid.MapOfN(name, all, 0, 5), func(v map[string]any) json.RawMessage {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err) // made of the value drawn above
		}
		return raw
	})
}

// Fat returns several free JSON texts of almost n bytes. Some have as many secrets as possible,
// each shorter than its mask. One has a long secret. One is nested as deep as a row allows.
func Fat(n int) (all []json.RawMessage) {
	for _, s := range []struct{ begin, each, end string }{
		{`{"a":[`, `{"pw":1}`, `]}`}, {`{"env":{`, `"":1`, `}}`},
		{`{"env":[`, `1`, `]}`}, {`{"a":[`, `{"id":"pw","value":1}`, `]}`},
	} {
		times := (n - len(s.begin+s.end) + 1) / (len(s.each) + 1)
		all = append(all, json.RawMessage(s.begin+strings.TrimSuffix(strings.Repeat(s.each+",", times), ",")+s.end))
	}
	const long = `{"a":1,"password":"`
	all = append(all, json.RawMessage(long+strings.Repeat("x", n-len(long)-2)+`"}`))
	deep := min(transfer.MaxNesting, (n-1)/6+1)
	return append(all, json.RawMessage(fmt.Sprint(strings.Repeat(`{"a":`, deep-1), `{}`, strings.Repeat(`}`, deep-1))))
}
