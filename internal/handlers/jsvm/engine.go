package jsvm

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Parts are what runs the JavaScript of tenants, and what some functions of handlers need beside
// it.
type Parts struct {
	Runtime Runtime
	// Markdown returns a text in Markdown as HTML that is safe to show.
	Markdown func(ctx context.Context, text string) (html string, err error)
	// Extract returns the text of a document.
	Extract func(ctx context.Context, contentType, name string, data []byte) (text string, err error)
	// Decode returns the text of bytes in a character encoding; nil knows UTF-8 only.
	Decode func(charset string, b []byte) (text string, ok bool)
}

// Engine is Parts that a host makes and passes on, and cannot look into.
type Engine struct {
	parts Parts
	err   error
}

// Scripts is what a host may pass: an Engine, or a type with one inside.
type Scripts interface {
	open() (Parts, error)
	// Close ends what runs.
	Close() error
}

var _ Scripts = Engine{}

// NewEngine returns an Engine with parts, or one that cannot be opened because of an error.
func NewEngine(p Parts, err error) Engine { return Engine{p, err} }

func (e Engine) open() (Parts, error) { return e.parts, e.err }

// Close ends the scripts that run, and the processes that run them.
func (e Engine) Close() error {
	if e.err != nil {
		return nil
	}
	return e.parts.Runtime.Close()
}

// Open returns the parts of what a host has passed. For nil they refuse all work with
// errs.Unavailable. Errors: that of making the Engine.
func Open(s Scripts) (Parts, error) {
	if s == nil {
		return Parts{Runtime: None{}, Markdown: noMarkdown, Extract: noExtract}, nil
	}
	p, err := s.open()
	if err == nil && p.Runtime == nil {
		err = errors.New("jsvm: an Engine without a Runtime")
	}
	if p.Markdown == nil {
		p.Markdown = noMarkdown
	}
	if p.Extract == nil {
		p.Extract = noExtract
	}
	return p, err
}

// maxPlain is the most bytes of a text that noExtract returns.
const maxPlain = 4 << 20

func noMarkdown(context.Context, string) (string, error) {
	return "", errs.New(errs.Unavailable, "This service converts no Markdown.")
}

// noExtract returns what is text already.
func noExtract(_ context.Context, contentType, _ string, data []byte) (string, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	text := strings.HasPrefix(kind, "text/") && kind != "text/html" || kind == "application/json"
	if text && len(data) <= maxPlain && utf8.Valid(data) {
		return string(bytes.TrimPrefix(data, []byte("\ufeff"))), nil
	}
	return "", errs.New(errs.Unavailable, "This service reads no documents but plain text.")
}
