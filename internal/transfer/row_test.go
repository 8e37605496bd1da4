package transfer_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// BenchmarkExport exports entities with 10 KiB of free JSON each, as the benchmark of bundles does.
func BenchmarkExport(b *testing.B) {
	data := json.RawMessage(`{"fields":[` + strings.Repeat(
		`{"field":"column_1","label":"Column 1","width":200,"formula":"3f9a8b7c6d5e4f30"},`, 120,
	) + `1]}`)
	transferer := transfer.Transferer[item]{
		Kind: "thing", ID: func(p item) string { return p.Name },
		Some: func(context.Context, string, []string) ([]item, error) { return []item{{Name: "a", A: data}}, nil },
		Free: (*item).free,
		Row:  func(p item) any { return p },
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range transferer.Export(b.Context(), "acme", []string{"a"}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
