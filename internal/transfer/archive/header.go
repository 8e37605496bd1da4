package archive

import (
	"encoding/json"
	"math"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// Header is bundle.json.
type Header struct {
	Format  string            `json:"format"`  // set by the Writer
	Version int               `json:"version"` // set by the Writer
	Tenant  string            `json:"tenant"`  // where the content is from
	Bundle  Bundle            `json:"bundle"`
	Entries []json.RawMessage `json:"entries"` // as the API writes them: type, reference, data; see MaxNesting
	// Counts is how many rows of each kind there are. A kind without rows may be named too: a
	// restore empties it.
	Counts map[entity.Kind]int `json:"counts"`
}

// Bundle is the manifest that an archive was made of; it is empty except for its name when there is
// none.
type Bundle struct {
	ID          string  `json:"id,omitempty"`
	Name        string  `json:"name"`
	Slug        string  `json:"slug,omitempty"`
	Description *string `json:"description,omitempty"`
}

// Check returns errs.Invalid if no archive with the header can be within the limits: if it is too
// long or nested too deep, or has too many rows. Counts may be incomplete.
func (h Header) Check(l Limits) error {
	_, err := h.bytes(l.WithDefaults())
	return err
}

// bytes writes bundle.json. Errors: as Check.
func (h Header) bytes(l Limits) ([]byte, error) {
	if err := h.checkMembers(l); err != nil {
		return nil, err
	}
	h.Format, h.Version = Format, Version
	if h.Entries == nil {
		h.Entries = []json.RawMessage{}
	}
	if h.Counts == nil {
		h.Counts = map[entity.Kind]int{}
	}
	raw, err := json.Marshal(h) // compact: what is nested deep would else grow with the square of its levels
	if err != nil {
		return nil, err
	}
	if len(raw) > maxHeader {
		return nil, bad(headerName, "has %d bytes: at most %d are allowed", len(raw), maxHeader)
	}
	return raw, checkHeader(raw)
}

// checkMembers returns errs.Invalid if the archive has too many members by its header.
func (h Header) checkMembers(l Limits) error {
	members := 2 // bundle.json and checksums.json
	for _, n := range h.Counts {
		members += min(n, math.MaxInt32) // a header that somebody made up
	}
	if members > l.Members {
		return errs.New(
			errs.Invalid, "An archive must have at most %d members, and this one has %d: %s.", l.Members,
			members, setting,
		)
	}
	return nil
}

// checkHeader checks bundle.json before it is decoded, as its decoded form may take many times its
// bytes.
func checkHeader(raw []byte) error {
	if wrong := wrongObject(raw); wrong != "" {
		return bad(headerName, "%s", wrong)
	}
	switch deep, wide := rawjson.Shape(raw); {
	case deep > maxDepth:
		return bad(headerName, "is nested more than %d levels deep", maxDepth)
	case wide > maxWidth:
		return bad(headerName, "has more than %d entries and kinds", maxWidth)
	}
	return nil
}

// parseHeader reads bundle.json.
func parseHeader(raw []byte) (h Header, err error) {
	if err := checkHeader(raw); err != nil {
		return h, err
	}
	// The format first: a newer version may have another shape.
	var is struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(raw, &is); err != nil || is.Format != Format {
		return h, errs.New(errs.Invalid, "The archive's bundle.json does not say the format %s.", Format)
	}
	if is.Version != Version {
		return h, errs.New(
			errs.Invalid, "The archive's bundle.json says version %d: this program reads version %d.",
			is.Version, Version,
		)
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, errs.Wrap(errs.Invalid, err, "The archive's bundle.json cannot be read.")
	}
	for kind, n := range h.Counts {
		if n < 0 || kind == "" {
			return h, errs.New(errs.Invalid, "The archive's bundle.json counts %d of %q.", n, short(string(kind)))
		}
	}
	return h, nil
}
