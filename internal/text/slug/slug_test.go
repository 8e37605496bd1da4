package slug_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

func TestOf(t *testing.T) {
	for name, want := range map[string]string{
		"Sales 2026": "sales-2026", "  Crème brûlée! ": "creme-brulee", "ﬁne": "fine", "Größe": "grosse",
		"日本": "x", "": "x", "--": "x", "a/b\\c": "a-b-c",
		"0190163d-8694-739b-aea5-966c26f8ad91": "x-0190163d-8694-739b-aea5-966c26f8ad91",
		strings.Repeat("ab ", 99):              strings.Repeat("ab-", 33) + "a",
	} {
		got := slug.Of(name, "x")
		is.New(t).Equal(got, want)
		is.New(t).True(slug.Valid(got))
	}
}

func TestNumbered(t *testing.T) {
	is, long := is.New(t), strings.Repeat("a", 128)
	is.Equal(slug.Numbered("a-b", 2), "a-b-2")
	is.Equal(slug.Numbered(long, 10), long[3:]+"-10")
	is.True(slug.Valid(slug.Numbered(long, 1_000_000)))
	for of, want := range map[[2]string]bool{
		{"a-2", "a"}: true, {"a-10", "a"}: true, {"a-1", "a"}: false,
		{"a-02", "a"}: false, {"a", "a"}: false, {"a-", "a"}: false, {"b-2", "a"}: false,
		{"", ""}: false, {"2", ""}: false, {long[2:] + "-2", long}: true,
	} {
		is.Equal(slug.IsNumbered(of[0], of[1]), want)
	}
}

func TestValid(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "A_b-9": true, strings.Repeat("a", 128): true,
		strings.Repeat("a", 129): false, "": false, "-a": false, "_a": false,
		"a b": false, "ä": false, "a.b": false, "a\n": false, "0190163d-8694-739b-aea5-966c26f8ad91": false,
		"0190163D-8694-739B-AEA5-966C26F8AD91": false, "0190163d8694739baea5966c26f8ad91": true,
		"a0190163d-8694-739b-aea5-966c26f8ad91b": true,
	} {
		is.New(t).Equal(slug.Valid(s), want)
	}
}

func TestFirstFree(t *testing.T) {
	is, long := is.New(t), strings.Repeat("x", 128)
	is.Equal(slug.FirstFree("a", nil), "a-2")
	is.Equal(slug.FirstFree("a", map[string]bool{"a": true, "a-2": true, "a-3": true, "a-5": true}), "a-4")
	is.Equal(slug.FirstFree(long, map[string]bool{long: true}), strings.Repeat("x", 126)+"-2")
}
