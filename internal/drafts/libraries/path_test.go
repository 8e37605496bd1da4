package libraries_test

import (
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
)

// FuzzValidPath: what is valid is clean, stays below and has no odd characters.
func FuzzValidPath(f *testing.F) {
	for _, p := range []string{
		"a", "a/b.c", "", ".", "..", "../a", "a/../b", "/a", "a//b", "a/", `a\b`, "a\x00", "\xff", "e\u0301",
		"é", "...", ".a", "a/.", strings.Repeat("a", 1025),
	} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if libraries.ValidPath(p) != nil {
			return
		}
		if p == "" || len(p) > 1024 || strings.ContainsAny(p, "\\\x00\n\r") {
			t.Fatalf("%q", p)
		}
		for _, part := range strings.Split(p, "/") {
			if part == "" || part == "." || part == ".." {
				t.Fatalf("%q", p)
			}
		}
	})
}
