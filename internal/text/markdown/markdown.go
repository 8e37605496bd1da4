// Package markdown converts the Markdown of tenants to safe HTML.
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

// MaxText is the most bytes of a text. MaxHTML is the most bytes of its HTML.
const (
	MaxText = 1 << 20
	MaxHTML = 4 << 20
)

// worker converts in a process that can be killed, because some texts of 16 KiB, such as deeply
// nested lists, take seconds.
var worker = subprocess.Worker{
	Name: "markdown", What: "The Markdown", Work: convert,
	Time: 5 * time.Second, Memory: 256 << 20, Input: MaxText, Output: MaxHTML,
}

// Child must be called first in the main function of a program that calls HTML.
func Child() { worker.Child() }

// HTML converts a text in GitHub Flavored Markdown to HTML without scripts, styles, frames, forms,
// and links to anything but http, https and mailto. Safe HTML in the text is kept.
//
// It returns errs.TooLarge for a text of more than MaxText bytes. It returns errs.Invalid for one
// that takes too much time or memory or results in too much HTML. It returns errs.Unavailable if
// too many texts are converted at the same time. They are limited by the tenant of the actor in
// ctx.
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

// tools are made for the first text.
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

// errLong is the error for too long HTML.
var errLong = errs.New(errs.Invalid, "The Markdown results in more than 4194304 bytes of HTML.")

// convert implements HTML in the child process.
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
