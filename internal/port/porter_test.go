package port_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/port"
)

type piece struct {
	Name string          `json:"name"`
	A    json.RawMessage `json:"a"`
	Note json.RawMessage `json:"note"` // of whose members the kind knows
	B    json.RawMessage `json:"b"`
}

func hole(n int) string { return fmt.Sprintf(`"\u0068\u006f\u006c\u0065 %d"`, n) }

// TestExportIsAsEncodingJSONWrites has names and JSON that look like what stands for free JSON while a row is made.
func TestExportIsAsEncodingJSONWrites(t *testing.T) {
	is := is.New(t)
	for _, p := range []piece{
		{"plain", json.RawMessage(`{"a":1}`), nil, json.RawMessage(`[1,"x"]`)},
		{`"` + hole(0) + hole(2) + `hole 0 <&>`, json.RawMessage(`{` + hole(2) + `:` + hole(0) + `}`), json.RawMessage(`"hole 2"`), json.RawMessage(hole(0))},
		{"none", nil, nil, nil},
		{"one", nil, json.RawMessage(`{}`), json.RawMessage(`{` + hole(0) + `:` + hole(2) + `}`)},
	} {
		porter := port.Porter[piece]{
			Kind: "thing", ID: func(p piece) string { return p.Name },
			Some: func(context.Context, string, []string) ([]piece, error) { return []piece{p}, nil },
			Free: func(p *piece) []*json.RawMessage { return []*json.RawMessage{&p.A, &p.B} },
			Row:  func(p piece) any { return p },
		}
		for row, err := range porter.Export(t.Context(), "acme", []string{p.Name}) {
			is.NoErr(err)
			is.True(json.Valid(row.JSON))
			var got piece
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

func TestExportMasksSecrets(t *testing.T) {
	is := is.New(t)
	porter := port.Porter[piece]{
		Kind: "thing", ID: func(p piece) string { return p.Name },
		Some: func(context.Context, string, []string) ([]piece, error) {
			return []piece{{Name: "p", A: json.RawMessage(`{"password":"x"}`), B: json.RawMessage(`{"password":`)}}, nil
		},
		Free: func(p *piece) []*json.RawMessage { return []*json.RawMessage{&p.A, &p.B} },
		Row:  func(p piece) any { return p },
	}
	for row, err := range porter.Export(t.Context(), "acme", []string{"p"}) {
		is.NoErr(err)
		is.Equal(string(row.JSON), `{"name":"p","a":{"password":"********"},"note":null,"b":null}`)
	}
}
