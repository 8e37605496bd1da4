package hal_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/hal"
)

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	is.New(t).NoErr(err)
	return string(b)
}

func TestResource(t *testing.T) {
	is := is.New(t)
	type color struct {
		Key string `json:"key"`
	}
	is.Equal(encode(t, hal.Resource{Links: hal.Self("http://x/api/colors/red"), Value: color{"red"}}),
		`{"_links":{"self":{"href":"http://x/api/colors/red"}},"key":"red"}`)
	is.Equal(encode(t, hal.Resource{
		Links:    hal.Self("s").With("a", "b"),
		Value:    struct{}{},
		Embedded: hal.Embedded{"r": []int{}},
	}),
		`{"_links":{"a":{"href":"b"},"self":{"href":"s"}},"_embedded":{"r":[]}}`)
	_, err := json.Marshal(hal.Resource{Value: []int{1}})
	is.True(err != nil)
}

func TestCollectionOfNothingIsEmptyArray(t *testing.T) {
	is := is.New(t)
	is.Equal(encode(t, hal.Collection[int](hal.Self("s"), hal.Page{Start: 3, Total: 9}, "inf:color", nil, nil)),
		`{"_links":{"self":{"href":"s"}},"count":0,"start":3,"total":9,"_embedded":{"inf:color":[]}}`)
	is.Equal(encode(
		t,
		hal.Collection(hal.Self("s"), hal.Page{Count: 1, Total: 1}, "r", []int{7}, map[string]any{"permissions": 1}),
	),
		`{"_links":{"self":{"href":"s"}},"count":1,"permissions":1,"start":0,"total":1,"_embedded":{"r":[7]}}`)
}

func TestDetective(t *testing.T) {
	is := is.New(t)
	is.Equal(encode(t, hal.Detective(hal.Self("s"), []string{"x", "y"})),
		`{"_links":{"self":{"href":"s"}},"items":[{"detective":"d0","id":"d0:0","value":"x"},{"detective":"d1","id":"d1:1","value":"y"}],"start":0,"count":2,"total":2}`)
}

// TestAmpersandIsPlain: < and > are escaped wherever they stand, & is not.
func TestAmpersandIsPlain(t *testing.T) {
	is := is.New(t)
	got, err := hal.Append(nil, map[string]any{"a&b": json.RawMessage(`"<c&d>"`), "e": []string{"f&g", "<"}})
	is.NoErr(err)
	is.Equal(string(got), `{"a&b":"\u003cc&d\u003e","e":["f&g","\u003c"]}`)
	got, err = hal.Resource{Links: hal.Self("s?a=1&b=2"), Value: struct {
		Text string `json:"text"`
	}{"a&b"}}.AppendJSON(nil)
	is.NoErr(err)
	is.Equal(string(got), `{"_links":{"self":{"href":"s?a=1&b=2"}},"text":"a&b"}`)
}

func TestHref(t *testing.T) {
	is := is.New(t)
	is.Equal(hal.Href("colors", "brand/primary 100%"), "/api/colors/brand%2Fprimary%20100%25")
	is.Equal(hal.Href("apps", "jo:sales"), "/api/apps/jo%3Asales")
	is.Equal(hal.Href("colors", "..", "permissions"), "/api/colors/%2E%2E/permissions")
	is.Equal(hal.Href("colors", "a?b#c;d+e"), "/api/colors/a%3Fb%23c%3Bd+e")
}

func TestHrefRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringN(1, 40, -1).Draw(t, "key")
		href := hal.Href("colors", key)
		u, err := url.Parse("http://host" + href)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(u.EscapedPath(), "/")
		back, err := url.PathUnescape(parts[len(parts)-1])
		if err != nil || back != key || len(parts) != 4 {
			t.Fatalf("%q became %q", key, back)
		}
	})
}

func TestTime(t *testing.T) {
	is := is.New(t)
	at := time.Date(2026, 11, 20, 21, 31, 0, 123999000, time.FixedZone("", 3600))
	is.Equal(encode(t, hal.Time(at)), `"2026-11-20T20:31:00.123Z"`)
	is.Equal(encode(t, hal.OrNull(nil)), `null`)
	is.Equal(encode(t, hal.OrNull(&at)), `"2026-11-20T20:31:00.123Z"`)
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(
			rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s"),
			rapid.Int64Range(0, 999999999).Draw(t, "ns"),
		)
		if got, want := string(hal.AppendTime(nil, at)), at.UTC().Format(`"2006-01-02T15:04:05.000Z"`); got != want {
			t.Fatalf("%s is not %s", got, want)
		}
	})
}

func TestAppendStringIsWhatEncodingJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		want, _ := json.Marshal(strings.ReplaceAll(s, "&", "+"))
		if got := hal.AppendString(nil, s); strings.ReplaceAll(string(got), "&", "+") != string(want) {
			t.Fatalf("%s is not %s", got, want)
		}
	})
	is.New(t).Equal(string(hal.AppendString(nil, `<a&b>\u0026`)), `"\u003ca&b\u003e\\u0026"`)
	is.New(t).Equal(string(hal.AppendStringOrNull(nil, nil)), "null")
}

func TestAppendRawIsWhatEncodingJSONWrites(t *testing.T) {
	is := is.New(t)
	for _, raw := range []string{"", "null", "{}", ` { "a" : [ 1, 2 ] } `, `"<&>"`, `{"a":"\u2028"}`} {
		got, err := hal.AppendRaw([]byte("x"), json.RawMessage(raw))
		is.NoErr(err)
		want := []byte("null")
		if raw != "" {
			want, err = json.Marshal(json.RawMessage(raw))
			is.NoErr(err)
		}
		is.Equal(string(got), "x"+strings.ReplaceAll(string(want), `\u0026`, "&"))
	}
	_, err := hal.AppendRaw(nil, json.RawMessage("{"))
	is.True(err != nil) // not JSON
}
