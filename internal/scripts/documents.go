package scripts

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// markdown is the function markdown(text).
func (b *Binder) markdown(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	list, err := jsvm.Arguments("markdown", args, 1)
	if err != nil {
		return nil, err
	}
	text := ""
	if jsonfill.IsNull(list[0]) || json.Unmarshal(list[0], &text) != nil {
		return nil, errs.New(errs.Invalid, "markdown: the argument must be a string")
	}
	safe, err := b.o.Markdown(ctx, text)
	if err != nil {
		return nil, err
	}
	return json.Marshal(safe)
}

// document is what extractText reads; a file of a form is one.
type document struct {
	Content     *string                `json:"content"`
	Encoding    jsonfill.Field[string] `json:"encoding"`
	ContentType jsonfill.Field[string] `json:"contentType"`
	Filename    jsonfill.Field[string] `json:"filename"`
	Size        jsonfill.Field[int]    `json:"size"` // of a file of a form, which nothing needs
}

// extractText is the function extractText(document, options), with a document {content, encoding,
// contentType, filename} and options that have some of these. entry.js makes documents of texts and
// bytes.
func (b *Binder) extractText(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	list, err := jsvm.Arguments("extractText", args, 2)
	if err != nil {
		return nil, err
	}
	var d document
	for i, what := range []string{"the document", "the options"} {
		if i > 0 && jsonfill.IsNull(list[i]) {
			continue
		}
		var by jsonfill.Filler
		if err := by.Fill(list[i], &d, ""); err != nil || !bytes.HasPrefix(list[i], []byte("{")) {
			return nil, errs.New(
				errs.Invalid,
				"extractText: %s must have content, encoding, contentType and filename, which are strings",
				what,
			)
		}
		if err := by.RefuseOptions("extractText"); err != nil {
			return nil, err
		}
	}
	if d.Content == nil {
		return nil, errs.New(
			errs.Invalid, "extractText: the first argument must be a string, bytes, or an object with content",
		)
	}
	var encoding, contentType, filename string
	d.Encoding.Apply(&encoding)
	d.ContentType.Apply(&contentType)
	d.Filename.Apply(&filename)
	content := []byte(*d.Content)
	switch encoding {
	case "":
	case "base64":
		if content, err = base64.StdEncoding.DecodeString(*d.Content); err != nil {
			return nil, errs.New(errs.Invalid, "extractText: the content is not base64")
		}
	default:
		return nil, errs.New(errs.Invalid, `extractText: encoding must be "base64", or left out`)
	}
	text, err := b.o.Extract(ctx, contentType, filename, content)
	if err != nil {
		return nil, err
	}
	return json.Marshal(text)
}
