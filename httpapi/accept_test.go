package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestMediaType(t *testing.T) {
	const plain, hal = "application/json; charset=utf-8", "application/hal+json"
	for accept, want := range map[string]string{
		"": plain, "*/*": plain, "application/*": plain,
		"application/json": plain, "application/hal+json": hal, "APPLICATION/HAL+JSON": hal,
		"application/hal+json, application/json": plain, "application/hal+json, application/json;q=0.9": hal,
		"application/hal+json, */*;q=0.1": hal,
		"application/hal+json;q=0.1, */*": plain, "application/json;q=0, */*": hal,
		"application/hal+json;q=0, */*": plain, "text/html, application/*;q=0.2": plain,
		"text/html": "", "text/*, image/png": "",
		"*/*;q=0": "", "application/*;q=0, */*": "", "application/json;q=0, application/hal+json;q=0": "",
		`application/hal+json;profile="a,b;q=0"`: hal, "application/hal+json;q=2": plain,
		"nonsense": plain, ",": plain, "*/json": plain,
		"text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8": plain,
		"application/vnd.api+json":                                "",
		"application/json ; q=0.5 , application/hal+json ; q=0.6": hal,
		"application/json;q=NaN":                                  plain, `text/html;a="`: "",
	} {
		header := http.Header{}
		if accept != "" {
			header.Set("Accept", accept)
		}
		got, acceptable := httpapi.MediaType(header)
		if want == "" && acceptable || want != "" && (!acceptable || got != want) {
			t.Errorf("%q: %s %v, want %q", accept, got, acceptable, want)
		}
	}
	two := http.Header{"Accept": {"application/json;q=0.1", "application/hal+json"}}
	got, _ := httpapi.MediaType(two)
	is.New(t).Equal(got, hal)
}

// TestNotAcceptable: no route that answers JSON does anything for a client that accepts neither of
// its media types.
func TestNotAcceptable(t *testing.T) {
	s := stocked(t, dbtest.SQLite)
	for _, r := range httpapi.Routes() {
		if r.AnyType || r.Method == http.MethodDelete {
			continue
		}
		req := s.request(t, who(r), r.Method, s.target(r), "", "Content-Type: application/json", "Accept: text/html")
		req.Body = unread{t}
		a := s.send(req)
		if a.status != 406 || !strings.Contains(a.message(t), "Accept") {
			t.Errorf("%s: %d %s", r.Name, a.status, a.body)
		}
	}
	for _, r := range httpapi.Routes() {
		if r.Method != http.MethodGet || r.AnyType {
			continue
		}
		a := s.call(t, who(r), r, "Accept: application/hal+json")
		if a.status != 200 || a.header.Get("Content-Type") != "application/hal+json" ||
			a.header.Get("Vary") != "Accept" {
			t.Errorf("%s: %d %v", r.Name, a.status, a.header)
		}
	}
}
