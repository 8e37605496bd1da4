package fields_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/fields"
)

func TestPlace(t *testing.T) {
	const id = "00000000-0000-7000-8000-00000000000a"
	long := strings.Repeat("j", 256) // the maximum for usernames
	for text, want := range map[string][3]string{
		id: {id, "", ""}, "00000000-0000-7000-8000-00000000000A": {id, "", ""},
		"jo:sales": {"", "jo", "sales"}, "a:b:c": {"", "a:b", "c"},
		"00000000-0000-7000-8000-00000000000A:x": {"", id, "x"}, long + ":x": {"", long, "x"},
	} {
		is := is.New(t)
		key, owner, name, ok := fields.Place(text)
		is.True(ok)
		is.Equal([3]string{key, owner, name}, want)
	}
	for _, text := range []string{"", "x", ":x", "jo:", "jo:a b", "j\x00:x", "jo:" + id, long + "j:x"} {
		_, _, _, ok := fields.Place(text)
		is.New(t).True(!ok)
	}
}
