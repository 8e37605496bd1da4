package view

import (
	"mime"
	"strings"
)

// Headers returns the headers of a file of an app, for the media type that the library has of it
// and a Policy. Browsers take the type as it is, send no Referer, and store what they cannot show.
// Pages at an opaque origin may read the file, which module scripts and fonts need; with an origin
// of its own an app needs no such leave.
func Headers(mediaType, policy string, own bool) map[string]string {
	h := map[string]string{
		"Content-Security-Policy": policy,
		"Referrer-Policy":         "no-referrer",
		"X-Content-Type-Options":  "nosniff",
		"X-DNS-Prefetch-Control":  "off",
	}
	if !own {
		h["Access-Control-Allow-Origin"] = "null"
	}
	var inline bool
	if h["Content-Type"], inline = ContentType(mediaType); !inline {
		h["Content-Disposition"] = "attachment"
	}
	return h
}

// ContentType returns the Content-Type header for a media type, and whether browsers show the file
// or use it in a page instead of storing it. Text is in UTF-8 unless the media type has a charset.
// What is no media type is application/octet-stream.
func ContentType(mediaType string) (header string, inline bool) {
	t, params, err := mime.ParseMediaType(mediaType)
	if err != nil || !strings.Contains(t, "/") {
		return "application/octet-stream", false
	}
	switch t {
	case "application/javascript", "application/x-javascript", "application/ecmascript", "text/ecmascript":
		t = "text/javascript"
	}
	if text(t) {
		if params["charset"] == "" {
			params["charset"] = "utf-8"
		}
	} else {
		delete(params, "charset")
	}
	header = mime.FormatMediaType(t, params)
	if header == "" {
		return "application/octet-stream", false
	}
	return header, shown(t)
}

// text reports whether files of a type are text that has a charset. JSON is always UTF-8.
func text(t string) bool {
	return strings.HasPrefix(t, "text/") || t == "application/xml" || t == "application/sql" ||
		t == "application/yaml" || strings.HasSuffix(t, "+xml")
}

// shown reports whether browsers show files of a type, or use them in pages.
func shown(t string) bool {
	kind, _, _ := strings.Cut(t, "/")
	switch kind {
	case "text", "image", "font", "audio", "video":
		return true
	}
	switch t {
	case "application/json", "application/xml", "application/xhtml+xml", "application/wasm", "application/pdf",
		"application/manifest+json",
		"application/ld+json", "application/geo+json", "application/yaml", "application/sql",
		"application/font-woff", "application/font-woff2",
		"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-font-otf":
		return true
	}
	return false
}
