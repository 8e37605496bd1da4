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
	is.Equal(out.String(), `jo is of the domain staff
Unable to log in
2 users, 2 teams and 4 memberships are new
`)
}
