package content

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// maxData is the most bytes of the data of an entity.
const maxData = 1 << 20

// place reads an id or a natural id. Errors: errs.NotFound.
func place(kind entity.Kind, id string) (Lookup, error) {
	key, owner, slug, ok := fields.Place(id)
	if !ok {
		return Lookup{}, notFound(kind) // cannot exist, and the database may refuse the text
	}
	return Lookup{ID: key, Owner: owner, Slug: slug}, nil
}

func notFound(kind entity.Kind) error { return errs.New(errs.NotFound, "%s not found.", Noun(kind)) }

// Noun is a kind as a sentence begins with it.
func Noun(kind entity.Kind) string { return strings.ToUpper(string(kind[:1])) + string(kind[1:]) }

// WithArticle is a kind with its article: "a report", "an app".
func WithArticle(kind entity.Kind) string {
	if strings.ContainsRune("aeiou", rune(kind[0])) {
		return "an " + string(kind)
	}
	return "a " + string(kind)
}

// accept checks an entity and fills in what was left out. Errors: errs.Invalid naming the field.
func (e *Entity) accept() error {
	if err := e.acceptColumns(); err != nil {
		return err
	}
	var err error
	e.Data, err = object(e.Data)
	return err
}

// checkRows checks the fields and rows in the data of a dataset, unless the data are still those
// that it was stored with: what was imported, or stored before there were rows, may be anything.
func (e *Entity) checkRows(was json.RawMessage) error {
	if e.Kind != Dataset || bytes.Equal(e.Data, was) {
		return nil
	}
	return datasets.Check(e.Data)
}

// acceptRow is accept for a row, whose data was found to be valid JSON when the row was read. What
// its secrets take does not count: a mask may be longer than the secret was, and the ones that are
// here come from data that was accepted here.
func (e *Entity) acceptRow() error {
	if err := e.acceptColumns(); err != nil {
		return err
	}
	var err error
	if e.Data, err = valid(e.Data); err != nil {
		return err
	}
	if wrong := transfer.Unfit(e.Data); wrong != "" {
		return errs.New(errs.Invalid, "data %s", wrong)
	}
	if len(e.Data) <= maxData {
		return nil
	}
	if bare, _ := entity.KeepSecrets(e.Data, nil); len(bare) > maxData {
		return errData
	}
	return nil
}

// acceptColumns is accept for all but the data.
func (e *Entity) acceptColumns() error {
	err := cmp.Or(
		fields.Name(&e.Name), fields.Slug(&e.Slug), fields.Text("description", &e.Description, fields.MaxDescription),
		fields.Text("source", &e.Source, fields.MaxSource), fields.Text("sourceId", &e.SourceID, fields.MaxSource),
	)
	if err != nil {
		return err
	}
	if e.EditingID != nil {
		id, ok := uuids.Parse(*e.EditingID)
		if !ok {
			return errs.New(errs.Invalid, "editingId must be a UUID")
		}
		e.EditingID = &id
	}
	return nil
}

// object returns a JSON object without spaces around its parts, {} for none.
func object(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > 0 && !(utf8.Valid(raw) && rawjson.Valid(raw)) {
		return nil, errData
	}
	data, err := valid(raw)
	if err != nil || len(data) > maxData {
		return nil, errData
	}
	if wrong := transfer.Unfit(data); wrong != "" {
		return nil, errs.New(errs.Invalid, "data %s", wrong)
	}
	return data, nil
}

var errData = errs.New(errs.Invalid, "data must be a JSON object of at most %d bytes", maxData)

// valid is object, whatever the size, for JSON that is known to be valid. Most of what travels is
// long and has no spaces: it stays as it is.
func valid(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}"), nil
	}
	if spaced(raw) {
		var b bytes.Buffer
		_ = json.Compact(&b, raw) // it is valid
		raw = b.Bytes()
	}
	if raw[0] != '{' {
		return nil, errData
	}
	return raw, nil
}

// spaced reports whether valid JSON has a space around one of its parts.
func spaced(text []byte) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += 1 + closing(text[i+1:])
		case ' ', '\t', '\r', '\n':
			return true
		}
	}
	return false
}
