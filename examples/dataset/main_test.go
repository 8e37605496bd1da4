package main

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestRun(t *testing.T) {
	is := is.New(t)
	var out strings.Builder
	is.NoErr(run(t.Context(), t.TempDir(), &out))
	is.Equal(out.String(), `[{"name":"item","type":"string","label":"Item"},{"name":"amount","type":"numeric",`+
		`"label":"Amount"},{"name":"paid","type":"boolean","label":"Paid"}]
[{"item":"Table","amount":320,"paid":false},{"item":"Chair","amount":49.5,"paid":false}]
3 of acme are not paid
filter.paid must be true or false
`)
}
