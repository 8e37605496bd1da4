package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// The pages for people are plain HTML in one frame and one style, without scripts, but for one that
// posts a form, and without anything from elsewhere.

const pageStyle = `body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 ` +
	`1rem;color:#1b1b1b;background:#fff}` +
	`a{color:#0b57d0}code{background:#f1f3f4}label,button{display:block;margin:.75rem ` +
	`0}input{display:block;font:inherit}button{font:inherit}` +
	`@media(prefers-color-scheme:dark){body{color:#e8eaed;background:#202124}a{color:#8ab4f8}code{background:#3c4043}}`

// markup is HTML that is being written. It takes the place of html/template, whose reflection makes
// the linker keep every exported method of a program: 5 MB of one that embeds this package.
type markup struct{ strings.Builder }

// addf adds HTML with a text for each %s in it. The texts are escaped: they are the content of an
// element, or the value of an attribute in double quotes. One that is an address is of address.
func (m *markup) addf(format string, texts ...string) {
	escaped := make([]any, len(texts))
	for i, text := range texts {
		escaped[i] = htmlEscaper.Replace(text)
	}
	fmt.Fprintf(m, format, escaped...)
}

// links adds a list of links, or nothing for no links. format has a %s for the text of one.
func (m *markup) links(format string, all []pageLink) {
	if len(all) == 0 {
		return
	}
	m.addf("<ul>\n")
	for _, l := range all {
		m.addf(`<li><a href="%s">`+format+"</a></li>\n", address(l.Href), l.Text)
	}
	m.addf("</ul>\n")
}

var htmlEscaper = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;", "\x00", "\ufffd",
)

// address returns an address for a link or form of a page, and # for one that a browser does not
// get by HTTP, such as javascript:alert(1).
func address(to string) string {
	scheme, _, found := strings.Cut(to, ":")
	if found && !strings.ContainsAny(scheme, "/?#") && !strings.EqualFold(scheme, "http") &&
		!strings.EqualFold(scheme, "https") {
		return "#"
	}
	return to
}

// pageReply replies with a page that has a title and a body. forms are the sources of its policy
// that its forms may be sent to. With forms, the browser sends the origin of the page; without, it
// sends nothing, as the address of the page may have a credential.
func pageReply(status int, title string, body *markup, forms string) rest.Reply {
	referrer := "no-referrer"
	if forms != noForms {
		referrer = "same-origin" // without it a browser sends no origin with a form
	}
	header := map[string]string{
		"Content-Type": "text/html; charset=utf-8",
		"Content-Security-Policy": "default-src 'none'; style-src '" + styleHash(pageStyle) +
			"'; base-uri 'none'; form-action " + forms + "; frame-ancestors 'none'",
		"Referrer-Policy": referrer,
	}
	var page markup
	page.WriteString(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
`)
	page.addf("<title>%s</title>\n<style>", title)
	page.WriteString(pageStyle)
	page.addf("</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n", title)
	page.WriteString(body.String())
	page.WriteString("</main>\n</body>\n</html>\n")
	return rest.Reply{Status: status, Header: header, Stream: func(w io.Writer) error {
		_, err := io.WriteString(w, page.String())
		return err
	}}
}

// noForms is the source of a page without forms.
const noForms = "'none'"

// styleHash returns the source of a policy that allows a style alone.
func styleHash(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// notice is what a page tells a person.
type notice struct {
	Title   string
	Text    []string // paragraphs
	Request string   // the id of the request, for those who help; "" for none
	Links   []pageLink
}

// pageLink is where a page leads on.
type pageLink struct{ Href, Text string }

// noticePage replies with a page that tells a person something. The same address has another answer
// for programs.
func noticePage(status int, n notice) rest.Reply {
	answer := n.reply(status)
	answer.Header["Vary"] = varyByVisit["Vary"]
	return answer
}

// reply replies with a notice.
func (n notice) reply(status int) rest.Reply {
	var body markup
	for _, text := range n.Text {
		body.addf("<p role=\"status\">%s</p>\n", text)
	}
	body.links("%s", n.Links)
	if n.Request != "" {
		body.addf("<p>When you ask for help, name this request: <code>%s</code></p>\n", n.Request)
	}
	return pageReply(status, n.Title, &body, noForms)
}

// postPage replies with a page that posts a form to an address elsewhere, by itself where the
// browser runs its script. Where the form leads from there is not said, as providers pass it on.
func postPage(title, to string, fields url.Values) rest.Reply {
	var body markup
	body.addf("<form method=\"post\" action=\"%s\">\n", address(to))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, value := range fields[name] {
			body.addf("<input type=\"hidden\" name=\"%s\" value=\"%s\">\n", name, value)
		}
	}
	body.addf("<button>Continue</button>\n</form>\n<script>")
	body.WriteString(postScript)
	body.addf("</script>\n")
	answer := pageReply(http.StatusOK, title, &body, "*")
	answer.Header["Content-Security-Policy"] += "; script-src '" + styleHash(postScript) + "'"
	answer.Header["Referrer-Policy"] = "no-referrer"
	return answer
}

const postScript = `document.forms[0].submit()`
