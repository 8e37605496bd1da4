package view_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/rest/view"
)

// directives takes a policy apart.
func directives(t *testing.T, policy string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, d := range strings.Split(policy, ";") {
		words := strings.Fields(d)
		if len(words) == 0 || all[words[0]] != nil {
			t.Fatalf("%q has an empty directive or one twice", policy)
		}
		all[words[0]] = words[1:]
	}
	return all
}

func TestPolicyHasOneOutside(t *testing.T) {
	is := is.New(t)
	for service, ancestor := range map[string]string{
		"":                        "'self'",
		"https://content.example": "https://content.example",
		"https://a b":             "'none'",
	} {
		own := service != ""
		all := directives(t, view.Policy(base, service))
		for name, sources := range all {
			for _, s := range sources {
				switch {
				case s == base, s == "'none'", s == "blob:" || s == "data:", name == "sandbox",
					strings.HasPrefix(s, "'unsafe-"):
				case name == "frame-ancestors" && s == ancestor, name == "webrtc" && s == "'block'":
				default:
					t.Errorf("%s has %s", name, s)
				}
			}
		}
		for _, none := range []string{"object-src", "frame-src"} {
			is.Equal(all[none], []string{"'none'"})
		}
		for _, alone := range []string{"base-uri", "form-action"} {
			is.Equal(all[alone], []string{base})
		}
		is.Equal(all["default-src"], []string{base, "'unsafe-inline'", "'unsafe-eval'", "blob:", "data:"})
		is.Equal(all["frame-ancestors"], []string{ancestor})
		flags := " " + strings.Join(all["sandbox"], " ") + " "
		is.Equal(strings.Contains(flags, " allow-same-origin "), own)
		is.True(strings.Contains(flags, " allow-scripts "))
		is.True(!strings.Contains(flags, "navigation") && !strings.Contains(flags, "escape") &&
			!strings.Contains(flags, "storage-access"))
	}
}

func TestPolicyTakesNothingButAPrefix(t *testing.T) {
	for _, c := range []struct{ prefix, want string }{
		{"https://a.example/api/apps/1/view/", "https://a.example/api/apps/1/view/"},
		{"http://127.0.0.1:8080/x/", "http://127.0.0.1:8080/x/"},
		{"http://localhost/", "http://localhost/"},
		{"https://a.example/x;script-src *;/", "https://a.example/x%3Bscript-src%20%2A%3B/"},
		{"https://a.example/a,b/", "https://a.example/a%2Cb/"},
		{"https://a.example/é 'self'/", "https://a.example/%C3%A9%20%27self%27/"},
		{"https://a.example/a%2Fb%3b/", "https://a.example/a%2Fb%3b/"},
		{"", "'none'"},
		{"/api/", "'none'"},
		{"//a.example/", "'none'"},
		{"*", "'none'"},
		{"https:", "'none'"},
		{"https://*/", "'none'"},
		{"https://*.example/", "'none'"},
		{"https://a.example:*/", "'none'"},
		{"https://[::1]/", "'none'"},
		{"https://u:p@a.example/", "'none'"},
		{"https://a.example", "'none'"},
		{"https://a.example/api", "'none'"},
		{"https://a.example/api/?", "'none'"},
		{"https://a.example/api/?x", "'none'"},
		{"https://a.example/api/#", "'none'"},
		{"https://a.example/api/../", "'none'"},
		{"https://a.example/api/%2e%2e/", "'none'"},
		{"https://a.example/\n/", "'none'"},
		{"https://a.example; script-src */", "'none'"},
		{"data:text/html,/", "'none'"},
		{"javascript://a/", "'none'"},
		{"ftp://a.example/", "'none'"},
	} {
		t.Run(c.prefix, func(t *testing.T) {
			is.New(t).Equal(directives(t, view.Policy(c.prefix, ""))["base-uri"], []string{c.want})
			is.New(t).Equal(directives(t, view.Policy(c.prefix, ""))["default-src"][0], c.want)
		})
	}
}

func TestContentType(t *testing.T) {
	for _, c := range []struct {
		given, want string
		inline      bool
	}{
		{"text/html", "text/html; charset=utf-8", true},
		{"TEXT/HTML; Charset=ISO-8859-1", "text/html; charset=ISO-8859-1", true},
		{"text/css", "text/css; charset=utf-8", true},
		{"text/javascript", "text/javascript; charset=utf-8", true},
		{"application/javascript", "text/javascript; charset=utf-8", true},
		{"application/x-javascript", "text/javascript; charset=utf-8", true},
		{"application/json", "application/json", true},
		{"application/json; charset=latin1", "application/json", true},
		{"image/svg+xml", "image/svg+xml; charset=utf-8", true},
		{"application/xhtml+xml", "application/xhtml+xml; charset=utf-8", true},
		{"image/png", "image/png", true},
		{"font/woff2", "font/woff2", true},
		{"video/mp4", "video/mp4", true},
		{"application/wasm", "application/wasm", true},
		{"application/pdf", "application/pdf", true},
		{"application/zip", "application/zip", false},
		{"application/octet-stream", "application/octet-stream", false},
		{"application/x-msdownload", "application/x-msdownload", false},
		{"message/rfc822", "message/rfc822", false},
		{"multipart/x-mixed-replace; boundary=x", "multipart/x-mixed-replace; boundary=x", false},
		{"", "application/octet-stream", false},
		{"html", "application/octet-stream", false},
		{"text/html\r\nSet-Cookie: x=y", "application/octet-stream", false},
		{"text/html; a=\"\x01\"", "text/html; a*=utf-8''%01; charset=utf-8", true},
	} {
		t.Run(c.given, func(t *testing.T) {
			is := is.New(t)
			got, inline := view.ContentType(c.given)
			is.Equal(got, c.want)
			is.Equal(inline, c.inline)
		})
	}
}

func TestHeaders(t *testing.T) {
	is := is.New(t)
	is.Equal(view.Headers("application/zip", "p", false), map[string]string{
		"Access-Control-Allow-Origin": "null", "Content-Disposition": "attachment",
		"Content-Security-Policy": "p", "Content-Type": "application/zip",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-DNS-Prefetch-Control": "off",
	})
	is.Equal(view.Headers("text/css", "p", true), map[string]string{
		"Content-Security-Policy": "p", "Content-Type": "text/css; charset=utf-8",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "X-DNS-Prefetch-Control": "off",
	})
}
