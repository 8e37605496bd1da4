package main

import (
	"os"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/javascript"
)

// TestMain begins as main does.
func TestMain(m *testing.M) {
	javascript.Child()
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	is := is.New(t)
	var out strings.Builder
	is.NoErr(run(t.Context(), t.TempDir(), &out))
	is.Equal(out.String(), `changed: jo create brand/red
order 2: Invalid color format
1 order
delete: Something was ordered in the color brand/red.
jo: 200 {"user":"jo","total":12}
mia: 200 {"_links":{"inf:color":{"href":"https://content.example.com/api/colors/brand%2Fred"},`+
		`"self":{"href":"https://content.example.com/api/colors/brand%2Fred/permissions"}},"edit":false,`+
		`"delete":false,`+
		`"write":false}
jo: 409 {"statusCode":409,"error":"Conflict","message":"Something was ordered in the color brand/red."}
eve: 401 {"statusCode":401,"error":"Unauthorized","message":"Log in first."}
`)
}
