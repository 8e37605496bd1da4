package archive

import (
	"encoding/json"
	"math"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// Header is the content of bundle.json.
type Header struct {
	Format  string            `json:"format"`  // set by the Writer
	Version int               `json:"version"` // set by the Writer
	Tenant  string            `json:"tenant"`  // the tenant of the content
	Bundle  Bundle            `json:"bundle"`
	Entries []json.RawMessage `json:"entries"` // in the format of the API: type, reference, data; see MaxNesting
	// Counts is the number of rows of each kind. It may contain a kind without rows, whose entities
	// a restore removes.
	Counts map[entity.Kind]int `json:"counts"`
}

// Bundle is the manifest from which an archive was made. Without a manifest it has only a name.
type Bundle struct {
	ID          string  `json:"id,omitempty"`
	Name        string  `json:"name"`
	Slug        string  `json:"slug,omitempty"`
	Description *string `json:"description,omitempty"`
}

// Check returns errs.Invalid if an archive with the header would exceed the limits: if the header
// is too long or nested too deep, or has too many rows. Counts may be incomplete.
func (h Header) Check(l Limits) error {
	_, err := h.bytes(l.WithDefaults())
	return err
}

// bytes returns bundle.json. It returns errors as Check does.
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
	raw, err := json.Marshal(h) // compact, as the indentation of deep nesting would have quadratic size
	if err != nil {
		return nil, err
	}
	if len(raw) > maxHeader {
		return nil, bad(headerName, "has %d bytes: at most %d are allowed", len(raw), maxHeader)
	}
	return raw, checkHeader(raw)
}

// checkMembers returns errs.Invalid if the archive has too many members according to its header.
func (h Header) checkMembers(l Limits) error {
	members := 2 // bundle.json and checksums.json
	for _, n := range h.Counts {
		members += min(n, math.MaxInt32) // the header can contain any number
	}
	if members > l.Members {
		return errs.New(
			errs.Invalid, "An archive must have at most %d members, and this one has %d: %s.", l.Members,
			members, setting,
		)
	}
	return nil
}

// checkHeader checks bundle.json before it is decoded, because its decoded form may be many times
// larger.
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

// parseHeader parses bundle.json.
func parseHeader(raw []byte) (h Header, err error) {
	if err := checkHeader(raw); err != nil {
		return h, err
	}
	// First the format, because a newer version may have other members.
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
