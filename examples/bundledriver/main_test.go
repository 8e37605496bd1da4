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
	is.Equal(out.String(), `italian.tgz
2 created: [dough pizza]
admin on pizza: More salt?
0 comments
`)
}
