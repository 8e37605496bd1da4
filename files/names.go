package files

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
)

// maxName is how many characters a filename may have, and how many bytes a content type.
const maxName = 255

// cleanName returns the last part of a filename, of a path of any system; noun in lower case when
// there is none.
// Errors: errs.Invalid for more than 255 characters, no UTF-8, or control characters.
func cleanName(name, noun string) (string, error) {
	name = strings.TrimSpace(name[strings.LastIndexAny(name, `/\`)+1:])
	switch {
	case name == "" || name == "." || name == "..":
		return strings.ToLower(noun), nil
	case !utf8.ValidString(name):
		return "", errs.New(errs.Invalid, "filename must be UTF-8")
	case utf8.RuneCountInString(name) > maxName:
		return "", errs.New(errs.Invalid, "filename must have at most %d characters", maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", errs.New(errs.Invalid, "filename must not have control characters")
	}
	return name, nil
}

// cleanType returns a media type in its normal form, application/octet-stream for "". Errors:
// errs.Invalid.
func cleanType(contentType string) (string, error) {
	if contentType == "" {
		return "application/octet-stream", nil
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return "", errs.Wrap(errs.Invalid, err, "content type is not a media type")
	}
	normal := mime.FormatMediaType(kind, params)
	if !strings.Contains(kind, "/") || normal == "" || len(normal) > maxName {
		return "", errs.New(errs.Invalid, "content type is not a media type")
	}
	return normal, nil
}
