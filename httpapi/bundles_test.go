package httpapi_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles/archive"
	"github.com/tenantcontent/tenantcontent/entity"
)

// withBundles adds the samples of bundles and archives. ARCHIVE stands for the bytes of an archive, STAGED for the id of
// one that is staged.
func withBundles(samples map[string]sample) map[string]sample {
	bundle := []string{"name string?", "slug string?", "description string?"}
	deploy := []string{"tenants strings?", "updateRule string?", "dryRun bool?", "changes bool?"}
	for name, s := range map[string]sample{
		"createBundle":      {body: `{"name": "New", "slug": "new"}`, fields: bundle},
		"putBundle":         {body: `{"description": "Other"}`, fields: bundle},
		"deleteBundle":      {last: "gone"},
		"createBundleEntry": {body: `{"type": "global"}`, fields: []string{"type string", "data object?"}},
		"putBundleEntry":    {body: `{"data": {"a": 1}}`, fields: []string{"data object?"}},
		"deleteBundleEntry": {},
		"exportBundle":      {},
		"deployBundle":      {body: `{"tenants": ["acme"]}`, fields: deploy},
		"importBundle":      {body: "ARCHIVE"},
		"exportEntries":     {body: `{"entries": [{"type": "global"}]}`, fields: []string{"name string?"}},
		"deployEntries":     {body: `{"tenants": ["acme"], "entries": [{"type": "global"}]}`, fields: append([]string{"name string?"}, deploy...)},
		"restoreArchive":    {body: "ARCHIVE"},
		"restoreFile":       {body: `{"uploadId": "STAGED"}`},
	} {
		samples[name] = s
	}
	return samples
}

// stockBundles makes two bundles, of which one may be deleted and the other has an entry, and an archive of colors.
func stockBundles(t testing.TB, w *world, param map[string]string) {
	id := func(a answer) string { return read[struct{ ID string }](t, a).ID }
	w.must(t, "admin", "POST", "/api/bundles", `{"name": "Gone"}`)
	param["bundles"] = id(w.must(t, "admin", "POST", "/api/bundles", `{"name": "Kept"}`))
	param["bundle-drivers"] = "tagged"
	param["entries"] = id(w.must(t, "admin", "POST", "/api/bundles/kept/entries", `{"type": "user", "username": "mia"}`))
	param["archive"] = colorArchive(t, map[string]string{"gone": "#ff0000", "red": "#ff0000", "sky": "blue"})
	param["staged"] = w.upload(t, "admin", param["archive"])
}

// colorArchive packs colors.
func colorArchive(t testing.TB, colors map[string]string) string {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	h := archive.Header{Tenant: "far", Bundle: archive.Bundle{Name: "Colors"}, Counts: map[entity.Kind]int{"color": len(colors)}}
	w, err := archive.NewWriter(&b, h)
	is.NoErr(err)
	for key, color := range colors {
		is.NoErr(w.Row(entity.Row{Key: entity.Key{Kind: "color", ID: key}, JSON: []byte(`{"color": "` + color + `"}`)}))
	}
	is.NoErr(w.Close())
	return b.String()
}

// archive names an archive for later requests, and shows what is in it.
func (s *script) archive(t testing.TB, packed string) string {
	t.Helper()
	is := is.New(t)
	if s.given[packed] == "" {
		s.counts[2]++
		s.given[packed] = fmt.Sprintf("<ARCHIVE-%d>", s.counts[2])
	}
	var out strings.Builder
	out.WriteString(s.given[packed] + "\n")
	zip, err := gzip.NewReader(strings.NewReader(packed))
	is.NoErr(err)
	members := tar.NewReader(zip)
	for {
		h, err := members.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		is.NoErr(err)
		content, err := io.ReadAll(members)
		is.NoErr(err)
		fmt.Fprintf(&out, "%s\n  %s\n", h.Name, strings.ReplaceAll(strings.TrimSpace(string(content)), "\n", "\n  "))
	}
}
