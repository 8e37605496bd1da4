package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"net/url"

	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// The pages for people are plain HTML in one frame and one style, without scripts, but for one that
// posts a form, and without anything from elsewhere.

const pageStyle = `body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 ` +
	`1rem;color:#1b1b1b;background:#fff}` +
	`a{color:#0b57d0}code{background:#f1f3f4}label,button{display:block;margin:.75rem ` +
	`0}input{display:block;font:inherit}button{font:inherit}` +
	`@media(prefers-color-scheme:dark){body{color:#e8eaed;background:#202124}a{color:#8ab4f8}code{background:#3c4043}}`

var pageFrame = template.Must(template.New("frame").Funcs(template.FuncMap{"style": func() template.CSS {
	return pageStyle
}}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>{{style}}</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
{{template "body" .}}</main>
</body>
</html>
`))

// newPage returns the template of a page with a body. Its data have a Title.
func newPage(body string) *template.Template {
	t := template.Must(pageFrame.Clone())
	template.Must(t.New("body").Parse(body))
	return t
}

// pageReply replies with a page. forms are the sources of its policy that its forms may be sent to.
// With forms, the browser has to say where they come from; without, it tells nobody, as the address
// of the page may have a credential.
func pageReply(status int, page *template.Template, forms string, data any) rest.Reply {
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
	return rest.Reply{Status: status, Header: header, Stream: func(w io.Writer) error { return page.Execute(w, data) }}
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
	answer := pageReply(status, noticeTemplate, noForms, n)
	answer.Header["Vary"] = varyByVisit["Vary"]
	return answer
}

var noticeTemplate = newPage(`{{range .Text}}<p role="status">{{.}}</p>
{{end}}{{with .Links}}<ul>
{{range .}}<li><a href="{{.Href}}">{{.Text}}</a></li>
{{end}}</ul>
{{end}}{{with .Request}}<p>When you ask for help, name this request: <code>{{.}}</code></p>
{{end}}`)

// postPage replies with a page that posts a form to an address elsewhere, by itself where the
// browser runs its script. Where the form leads from there is not said, as providers pass it on.
func postPage(title, to string, fields url.Values) rest.Reply {
	answer := pageReply(http.StatusOK, postTemplate, "*", struct {
		Title, To string
		Fields    url.Values
		Script    template.JS
	}{title, to, fields, postScript})
	answer.Header["Content-Security-Policy"] += "; script-src '" + styleHash(postScript) + "'"
	answer.Header["Referrer-Policy"] = "no-referrer"
	return answer
}

const postScript = `document.forms[0].submit()`

var postTemplate = newPage(`<form method="post" action="{{.To}}">
{{range $name, $values := .Fields}}{{range $values}}<input type="hidden" name="{{$name}}" value="{{.}}">
{{end}}{{end}}<button>Continue</button>
</form>
<script>{{.Script}}</script>
`)
