package libraries

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/errs"
)

// maxPath is how many bytes a path may have.
const maxPath = 1024

// ValidPath refuses what cannot be the path of a file: it is relative, with slashes and clean, in
// composed Unicode form (NFC), of at most 1,024 bytes, and has neither "..", backslashes nor
// control characters. Errors: errs.Invalid.
func ValidPath(p string) error {
	switch {
	case p == "" || len(p) > maxPath:
		return errs.New(errs.Invalid, "path must have 1 to %d bytes", maxPath)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool {
		return unicode.IsControl(r) || r == '\\'
	}):
		return errs.New(errs.Invalid, "path must be UTF-8 without control characters and backslashes")
	case path.IsAbs(p) || path.Clean(p) != p || p == "." || p == ".." || strings.HasPrefix(p, "../"):
		return errs.New(errs.Invalid, "path must be relative, without empty parts, . and ..")
	case !norm.NFC.IsNormalString(p):
		return errs.New(errs.Invalid, "path must be in composed Unicode form (NFC)")
	}
	return nil
}

// types are the media types by ending of the files that libraries have. The system's own table,
// which the mime package reads, differs from machine to machine.
var types = map[string]string{
	".avif": "image/avif", ".cjs": "text/javascript", ".css": "text/css", ".csv": "text/csv", ".gif": "image/gif",
	".htm": "text/html", ".html": "text/html", ".ico": "image/x-icon", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
	".js": "text/javascript", ".json": "application/json", ".map": "application/json", ".md": "text/markdown",
	".mjs": "text/javascript", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".ogg": "audio/ogg", ".otf": "font/otf",
	".pdf": "application/pdf", ".png": "image/png", ".sql": "application/sql", ".svg": "image/svg+xml",
	".ts": "text/typescript", ".tsx": "text/typescript", ".ttf": "font/ttf", ".txt": "text/plain",
	".wasm": "application/wasm", ".wav": "audio/wav",
	".webm": "video/webm", ".webmanifest": "application/manifest+json",
	".webp": "image/webp", ".woff": "font/woff", ".woff2": "font/woff2", ".xml": "application/xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip",
}

// mediaType returns a content type as it is kept, and for none that of the path's ending.
func mediaType(p, given string) (string, error) {
	if given == "" {
		if t := types[strings.ToLower(path.Ext(p))]; t != "" {
			return t, nil
		}
		return "application/octet-stream", nil
	}
	t, params, err := mime.ParseMediaType(given)
	formatted := mime.FormatMediaType(t, params)
	if err != nil || formatted == "" || !strings.Contains(t, "/") || len(formatted) > 255 {
		return "", errs.New(errs.Invalid, "contentType must be a media type such as text/plain")
	}
	return formatted, nil
}
