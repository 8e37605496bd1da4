package markdown

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

func TestMain(m *testing.M) {
	Child()
	m.Run()
}

func TestHTML(t *testing.T) {
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "ann"})
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# Title\n\nSome *text* and `code`.", "<h1>Title</h1>\n<p>Some <em>text</em> and <code>code</code>.</p>\n"},
		{"ä\xff", "<p>ä\ufffd</p>\n"},
		{
			"[a](https://example.com/?x=1&y=2)",
			"<p><a href=\"https://example.com/?x=1&amp;y=2\" rel=\"nofollow\">a</a></p>\n",
		},
		{"[a](javascript:alert(1)) <javascript:alert(1)>", "<p>a javascript:alert(1)</p>\n"},
		{"![i](/x.png)", "<p><img src=\"/x.png\" alt=\"i\"></p>\n"},
		{
			"<b onclick=\"x()\">b</b><script>alert(1)</script><iframe src=/x></iframe><form action=/x><input " +
				"name=a></form>",
			"<p><b>b</b></p>\n",
		},
		{"<svg><script>1</script></svg>\n\n<style>a{}</style>\n\n<p style=\"color:red\">x</p>", "<p></p>\n\n<p>x</p>"},
		{"```js\nlet a = '<'\n```", "<pre><code class=\"language-js\">let a = &#39;&lt;&#39;\n</code></pre>\n"},
		{"- [x] done", "<ul>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\"> done</li>\n</ul>\n"},
		{
			"a|b\n-|:-:\n1|2",
			"<table>\n<thead>\n<tr>\n<th>a</th>\n<th " +
				"align=\"center\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td " +
				"align=\"center\">2</td>\n</tr>\n</tbody>\n</table>\n",
		},
		{
			"~~gone~~ https://example.com",
			"<p><del>gone</del> <a href=\"https://example.com\" rel=\"nofollow\">https://example.com</a></p>\n",
		},
	} {
		t.Run(c.text, func(t *testing.T) {
			is := is.New(t)
			got, err := HTML(ctx, c.text)
			is.NoErr(err)
			is.Equal(got, c.want)
		})
	}
}

// TestHostile: texts that take quadratic time, or more, are refused in time.
func TestHostile(t *testing.T) {
	is := is.New(t)
	ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "ann"})
	limit := worker.Time
	worker.Time = 200 * time.Millisecond
	defer func() { worker.Time = limit }()
	n := 64 << 10
	for _, text := range []string{
		strings.Repeat("- ", n) + "a\n" + strings.Repeat("\n", n),
		strings.Repeat("|a", n) + "\n" + strings.Repeat("|-", n) + "\n" + strings.Repeat("|\n", n),
		strings.Repeat("> ", n),
		strings.Repeat("*a_ ", n),
		"[a]: /" + strings.Repeat("x", n) + "\n" + strings.Repeat("[a]", n),
	} {
		_, err := HTML(ctx, text)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	_, err := HTML(ctx, strings.Repeat("a", MaxText+1))
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	_, err = HTML(t.Context(), "a")
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

func FuzzConvert(f *testing.F) {
	f.Add([]byte("# a\n\n- <b onclick=x>[a](javascript:x)</b>\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<10 {
			return
		}
		out, err := convert(text)
		if err != nil {
			return
		}
		for _, bad := range []string{"<script", "<style", "<iframe", "<form", "href=\"javascript:"} {
			if strings.Contains(strings.ToLower(string(out)), bad) {
				t.Errorf("%q: %q", text, out)
			}
		}
	})
}
