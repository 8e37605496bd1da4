package keyring_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
)

func ring(t testing.TB, keys ...string) *keyring.Ring {
	t.Helper()
	r, err := keyring.Parse(strings.Join(keys, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	r := ring(t, keyring.Generate())
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.String()
		tenant, table, column, row :=
			part.Draw(t, "tenant"), part.Draw(t, "table"), part.Draw(t, "column"), part.Draw(t, "row")
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed, err := r.Seal(tenant, table, column, row, plain)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Open(tenant, table, column, row, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

// TestPlaceMatters uses few texts, so that many places differ only in where one part ends and the
// next begins.
func TestPlaceMatters(t *testing.T) {
	r := ring(t, keyring.Generate())
	part := rapid.SampledFrom([]string{"", "a", "b", "ab", "a\x00", "\x00a", "aa"})
	place := rapid.Custom(func(t *rapid.T) [4]string {
		return [4]string{part.Draw(t, "tenant"), part.Draw(t, "table"), part.Draw(t, "column"), part.Draw(t, "row")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := place.Draw(t, "from"), place.Draw(t, "to")
		sealed, err := r.Seal(a[0], a[1], a[2], a[3], []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Open(b[0], b[1], b[2], b[3], sealed)
		if (a == b) != (err == nil) || a != b && got != nil {
			t.Fatalf("%q opened at %q: %q, %v", a, b, got, err)
		}
	})
}

func TestEachPartMatters(t *testing.T) {
	is, r := is.New(t), ring(t, keyring.Generate())
	sealed, err := r.Seal("acme", "tc_tenants", "secret", "7", []byte("plain"))
	is.NoErr(err)
	for i := range 4 {
		p := []string{"acme", "tc_tenants", "secret", "7"}
		p[i] += "x"
		_, err := r.Open(p[0], p[1], p[2], p[3], sealed)
		is.True(err != nil)
		is.Equal(errs.CodeOf(err), errs.Internal)
	}
}

func TestSealedTwiceDiffers(t *testing.T) {
	is, r := is.New(t), ring(t, keyring.Generate())
	a, err := r.Seal("acme", "t", "c", "1", []byte("plain"))
	is.NoErr(err)
	b, err := r.Seal("acme", "t", "c", "1", []byte("plain"))
	is.NoErr(err)
	is.True(a != b)
}

func TestEveryChangeIsRefused(t *testing.T) {
	is, r := is.New(t), ring(t, keyring.Generate(), keyring.Generate())
	sealed, err := r.Seal("acme", "t", "c", "1", []byte("plain"))
	is.NoErr(err)
	refused := func(s string) {
		t.Helper()
		got, err := r.Open("acme", "t", "c", "1", s)
		if err == nil || got != nil {
			t.Errorf("%q opened as %q", s, got)
		}
	}
	for i := range len(sealed) {
		for bit := range 8 {
			b := []byte(sealed)
			b[i] ^= 1 << bit
			refused(string(b))
		}
		refused(sealed[:i])
		refused(sealed[:i] + "\n" + sealed[i:])
		refused(sealed[:i] + "=" + sealed[i:])
	}
	head, text, _ := cutLast(sealed)
	box, err := base64.RawURLEncoding.DecodeString(text)
	is.NoErr(err)
	for i := range box {
		for bit := range 8 {
			b := bytes.Clone(box)
			b[i] ^= 1 << bit
			refused(head + "." + base64.RawURLEncoding.EncodeToString(b))
		}
		refused(head + "." + base64.RawURLEncoding.EncodeToString(box[:i]))
	}
	refused(sealed + "\n")
	refused(sealed + ".")
	refused(base64.StdEncoding.EncodeToString(box))
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndex(s, ".")
	return s[:i], s[i+1:], true
}

func TestOtherKeys(t *testing.T) {
	is, old, next := is.New(t), keyring.Generate(), keyring.Generate()
	sealed, err := ring(t, old).Seal("acme", "t", "c", "1", []byte("plain"))
	is.NoErr(err)
	id := strings.Split(sealed, ".")[1]

	both := ring(t, next, old)
	got, err := both.Open("acme", "t", "c", "1", sealed)
	is.NoErr(err)
	is.Equal(string(got), "plain")
	is.True(ring(t, old).Current(sealed))
	is.True(!both.Current(sealed)) // it must be sealed again

	_, err = ring(t, next).Open("acme", "t", "c", "1", sealed)
	is.True(strings.Contains(err.Error(), id)) // it says which key is missing
	is.True(!ring(t, next).Current(""))
	is.True(!ring(t, next).Current("v1."))

	// with the id of another key of the ring it cannot be opened
	again, err := both.Seal("acme", "t", "c", "1", []byte("plain"))
	is.NoErr(err)
	_, err = both.Open("acme", "t", "c", "1", strings.Replace(sealed, id, strings.Split(again, ".")[1], 1))
	is.True(err != nil)
}

func TestParse(t *testing.T) {
	b := bytes.Repeat([]byte{0xfb, 0xff, 1, 2}, 8) // base64 with both special digits
	word := base64.StdEncoding.EncodeToString(b)
	sealed, err := ring(t, word).Seal("acme", "t", "c", "1", nil)
	is.New(t).NoErr(err)
	for name, text := range map[string]string{
		"std": word, "raw": base64.RawStdEncoding.EncodeToString(b), "url": base64.URLEncoding.EncodeToString(b),
		"rawurl": base64.RawURLEncoding.EncodeToString(b),
		"hex":    hex.EncodeToString(b), "HEX": strings.ToUpper(hex.EncodeToString(b)),
		"space":  "\r\n\t " + word + " \n",
		"commas": "," + word + ",", "second": keyring.Generate() + ", " + word + "\n" + keyring.Generate(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ring(t, text).Open("acme", "t", "c", "1", sealed)
			is.New(t).NoErr(err)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	good := keyring.Generate()
	b, err := base64.StdEncoding.DecodeString(good)
	is.New(t).NoErr(err)
	for name, text := range map[string]string{
		"empty": "", "separators": " ,\n",
		"text": "correct horse battery staple", "short": base64.StdEncoding.EncodeToString(b[:31]),
		"long": base64.StdEncoding.EncodeToString(append(b, 1)), "hex short": hex.EncodeToString(b)[:62],
		"zeros": base64.StdEncoding.EncodeToString(make([]byte, 32)), "zeros hex": strings.Repeat("0", 64),
		"twice": good + "\n" + good, "twice, spelled apart": good + "\n" + hex.EncodeToString(b),
		"one bad": good + "\n" + good[:40], "quoted": `"` + good + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := keyring.Parse(text)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			for word := range strings.FieldsSeq(text) {
				is.True(len(word) < 8 || !strings.Contains(err.Error(), word[:8]))
			}
		})
	}
}

func TestNothingPrintsKeys(t *testing.T) {
	is, word := is.New(t), keyring.Generate()
	r := ring(t, word)
	b, err := base64.StdEncoding.DecodeString(word)
	is.NoErr(err)

	var out bytes.Buffer
	type config struct {
		Name string
		ring *keyring.Ring
		Ring keyring.Ring
		copy keyring.Ring
	}
	c := config{"x", r, *r, *r}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t"} {
		_, _ = fmt.Fprintf(&out, verb+verb+verb+verb, r, *r, c, &c)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("start", "ring", r, "value", *r, "config", c)
	}
	text, err := json.Marshal(c)
	is.NoErr(err)
	out.Write(text)
	is.True(strings.Contains(out.String(), "keyring("))
	for _, secret := range []string{word[:8], hex.EncodeToString(b)[:8], strings.ToUpper(hex.EncodeToString(b))[:8],
		fmt.Sprint(b[:4])[1:], string(b[:4]), strings.Trim(fmt.Sprintf("%#v", b[:3]), "[]byte{}")} {
		is.True(!strings.Contains(out.String(), secret))
	}
}

func FuzzOpen(f *testing.F) {
	r := ring(f, keyring.Generate())
	sealed, err := r.Seal("acme", "t", "c", "1", []byte("plain"))
	is.New(f).NoErr(err)
	for _, seed := range []string{
		"", ".", "..", "v1", "v1..", sealed, sealed[:20], sealed + "x", "v2" + sealed[2:], "v1.00000000.AAAA",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := r.Open("acme", "t", "c", "1", s)
		if s != sealed && (err == nil || got != nil) {
			t.Errorf("%q opened as %q", s, got)
		}
		if r.Current(s) && !strings.HasPrefix(s, sealed[:12]) {
			t.Errorf("%q is not under the first key", s)
		}
	})
}

// TestDerive: derived bytes differ between keys and between purposes.
func TestDerive(t *testing.T) {
	is := is.New(t)
	text := keyring.Generate()
	derive := func(text, purpose string) string {
		ring, err := keyring.Parse(text)
		is.NoErr(err)
		key, err := ring.Derive(purpose)
		is.NoErr(err)
		is.Equal(len(key), 32)
		return string(key)
	}
	is.Equal(derive(text, "a"), derive(text, "a"))
	is.True(derive(text, "a") != derive(text, "b"))
	is.True(derive(text, "a") != derive(keyring.Generate(), "a"))
	is.Equal(derive(text+","+keyring.Generate(), "a"), derive(text, "a")) // derived from the first key
}
