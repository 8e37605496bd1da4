package uuids_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

const id = "0197f3a2-7c11-7abc-8def-0123456789ab"

func TestParse(t *testing.T) {
	is := is.New(t)
	for _, s := range []string{
		id, strings.ToUpper(id), "0197F3a2-7c11-7abc-8def-0123456789aB", "00000000-0000-0000-0000-000000000000",
	} {
		got, ok := uuids.Parse(s)
		is.True(ok)
		is.Equal(got, strings.ToLower(s))
		is.True(uuids.Valid(s))
	}
}

func TestParseRefusesOtherSpellings(t *testing.T) {
	for _, s := range []string{
		"", "x", "{" + id + "}", "(" + id + ")",
		"a" + id + "b", "urn:uuid:" + id, "URN:UUID:" + id, strings.ReplaceAll(id, "-", ""),
		" " + id, id + " ", id + "\n", id[:35],
		id + "0", id[:35] + "g", strings.Replace(id, "-", "_", 1), strings.Replace(id, "-", "0", 1),
		"0" + strings.Replace(id, "-", "", 1), id[:35] + "é",
		id[:34] + "é", strings.Repeat("-", 36), "{" + id[1:35] + "}",
	} {
		if got, ok := uuids.Parse(s); ok || got != "" {
			t.Errorf("%q is the id %q", s, got)
		}
	}
}
