package httpapi

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// compareInput are the options of _compare.
type compareInput struct {
	Files digests `json:"files"`
}

// digests are the SHA-256 of files by path.
type digests map[string]string

// FillField implements fieldFiller. Its error names the path whose value is not a string.
func (d *digests) FillField(_ *jsonfill.Filler, raw json.RawMessage, path string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return jsonfill.WrongType(path, reflect.TypeFor[digests]())
	}
	*d = make(digests, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var digest *string
		if err := json.Unmarshal(members[name], &digest); err != nil || digest == nil {
			return errs.New(errs.Invalid, "%s: each value must be a string, the SHA-256 of the file", path)
		}
		(*d)[name] = *digest
	}
	return nil
}

// comparisonBody is how the files of an app differ, as the API writes it.
type comparisonBody struct {
	Tenant       string            `json:"tenant"`
	ID           string            `json:"id"`
	EditingID    *string           `json:"editingId"`
	DraftID      *string           `json:"draftId"`
	Unchanged    int               `json:"unchanged"`
	Missing      []string          `json:"missing"`
	Differs      []string          `json:"differs"`
	Extra        []string          `json:"extra"`
	Digests      map[string]string `json:"digests"`
	MaxFileBytes int64             `json:"maxFileBytes"`
}

// Relations implements openapi.Related.
func (comparisonBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:contents"}}
}

// compareApp serves POST /api/apps/{id}/_compare {files: {path: sha256}} with at most 10,000 files:
// 200 and the paths that the app or draft does not have (missing), has with other bytes (differs)
// and has in addition (extra), how many are the same (unchanged), the SHA-256 of the app's files
// that differ or are in addition (digests), the id of the app's draft (draftId) and the most bytes
// of a file (maxFileBytes). It changes nothing. 400 for a path that no file can have and for what
// is not a SHA-256; 404; 403 for callers who may only run the app.
func (a appRoutes) compareApp(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[compareInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.Files == nil {
		return rest.Reply{}, errs.New(
			errs.Invalid, "files is required: an object of the SHA-256 of each file by its path",
		)
	}
	c, err := a.Apps.Compare(r.Context(), r.Param("id"), in.Files)
	if err != nil {
		return rest.Reply{}, err
	}
	list := func(paths []string) []string { return append([]string{}, paths...) }
	links := hal.Self(a.href(
		"apps", r.Param("id"), "_compare",
	)).With("inf:app", a.href("apps", r.Param("id"))).With("inf:contents", a.href("apps", r.Param("id"), "contents"))
	return rest.OK(hal.Resource{Links: links, Value: comparisonBody{
		c.App.Tenant, c.App.ID, c.App.EditingID, c.DraftID, c.Unchanged,
		list(c.Missing), list(c.Differs), list(c.Extra), c.Digests, c.MaxFile,
	}})
}
