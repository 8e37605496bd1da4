// Package markdown turns the Markdown of tenants into HTML that is safe to show.
package markdown

import (
	"bytes"
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// MaxText is the most bytes of a text, MaxHTML of its HTML.
const (
	MaxText = 1 << 20
	MaxHTML = 4 << 20
)

// worker does the work in a process that can be killed: some texts of 16 KiB, such as lists that
// are nested deeply, take seconds.
var worker = subprocess.Worker{
	Name: "markdown", What: "The Markdown", Work: convert,
	Time: 5 * time.Second, Memory: 256 << 20, Input: MaxText, Output: MaxHTML,
}

// Child must be called first in the main function of a program that calls HTML.
func Child() { worker.Child() }

// HTML returns a text in GitHub Flavored Markdown as HTML without scripts, styles, frames, forms,
// and links to anything but http, https and mailto. HTML in the text stays as far as it is safe. It
// returns errs.TooLarge for a text of more than MaxText bytes, errs.Invalid for one that takes too
// much time, memory or HTML, and errs.Unavailable if too much is converted at once. The actor of
// ctx is who counts.
func HTML(ctx context.Context, text string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	safe, err := worker.Do(ctx, a.Tenant, []byte(text))
	return string(safe), err
}

var (
	checkbox = regexp.MustCompile(`^checkbox$`)
	language = regexp.MustCompile(`^language-[\w+-]{1,32}$`)
)

// tools are made when the first text comes.
var tools = sync.OnceValues(func() (goldmark.Markdown, *bluemonday.Policy) {
	policy := bluemonday.UGCPolicy()
	policy.AllowAttrs("checked", "disabled").OnElements("input")
	policy.AllowAttrs("type").Matching(checkbox).OnElements("input")
	policy.AllowAttrs("class").Matching(language).OnElements("code")
	policy.AllowAttrs("align").Matching(bluemonday.CellAlign).OnElements("td", "th")
	policy.RequireNoFollowOnLinks(true)
	table := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	return goldmark.New(
		goldmark.WithExtensions(extension.Linkify, table, extension.Strikethrough, extension.TaskList),
		goldmark.WithRendererOptions(html.WithUnsafe()),
	), policy
})

// errLong is returned for HTML that is too long.
var errLong = errs.New(errs.Invalid, "The Markdown results in more than 4194304 bytes of HTML.")

// convert does the work of HTML.
func convert(text []byte) ([]byte, error) {
	convert, policy := tools()
	out := limited{}
	if err := convert.Convert(bytes.ToValidUTF8(text, []byte("\ufffd")), &out); err != nil {
		return nil, errLong
	}
	return policy.SanitizeBytes(out.b), nil
}

// limited keeps what is written to it, up to MaxHTML bytes.
type limited struct{ b []byte }

// Write appends b.
func (l *limited) Write(b []byte) (int, error) {
	if len(l.b)+len(b) > MaxHTML {
		return 0, errLong
	}
	l.b = append(l.b, b...)
	return len(b), nil
}
