package charset_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/charset"
)

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		charset, bytes, text string
		ok                   bool
	}{
		{"utf-8", "gr\u00fcn", "grün", true},
		{"UTF8", "gr\xfcn", "gr\xfcn", false},
		{"ISO-8859-1", "J\xf6rg\x80", "Jörg€", true}, // browsers read it as windows-1252
		{"windows-1252", "\x81", "", false},          // undefined
		{"utf-16le", "\xff\xfeA\x00", "A", true},
		{"shift_jis", "\x83e\x83X\x83g", "テスト", true},
		{"shift_jis", "\x83", "", false},
		{"iso-2022-kr", "a", "", false}, // browsers do not decode it
		{"", "a", "", false},
		{"klingon", "a", "", false},
	} {
		t.Run(c.charset, func(t *testing.T) {
			is := is.New(t)
			text, ok := charset.Decode(c.charset, []byte(c.bytes))
			is.Equal(text, c.text)
			is.Equal(ok, c.ok)
		})
	}
}
