package bundles_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// raw packs members, each a name and its content, as our writer would not.
func raw(t *testing.T, members ...[2]string) []byte {
	t.Helper()
	is, sums := is.New(t), map[string]string{}
	for _, m := range members {
		sums[m[0]] = fmt.Sprintf("%x", sha256.Sum256([]byte(m[1])))
	}
	last, err := json.Marshal(sums)
	is.NoErr(err)
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	out := tar.NewWriter(zip)
	for _, m := range append(members, [2]string{"checksums.json", string(last)}) {
		is.NoErr(out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: m[0], Size: int64(len(m[1])), Mode: 0o644}))
		_, err := out.Write([]byte(m[1]))
		is.NoErr(err)
	}
	is.NoErr(out.Close())
	is.NoErr(zip.Close())
	return b.Bytes()
}

// twoKinds are the ready kinds, and another one whose entities have files too.
func twoKinds(t *testing.T, w *world) []entity.Type {
	t.Helper()
	types := w.Content.Unchecked().Types()
	for _, kind := range types {
		if kind.Kind == content.Library {
			kind.Kind = "site"
			return append(types, kind)
		}
	}
	t.Fatal("no libraries")
	return nil
}

// TestSurvey: what contradicts itself is refused with the member that does, before anything begins.
func TestSurvey(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite(t))
	const id = "0190163d-8694-739b-aea5-966c26f8ad91"
	row := `{"name": "x", "ownerId": "jo", "data": {"a": 1, "a": 2}}`
	header := func(counts string) [2]string {
		return [2]string{
			"bundle.json",
			`{"format": "tenantcontent-bundle", "version": 1, "tenant": "acme", "bundle": {"name": "x"}, ` +
				`"entries": [], "counts": {` + counts + `}}`,
		}
	}
	library, site := [2]string{"entities/library/" + id + ".json", row}, [2]string{"entities/site/" + id + ".json", row}
	file := func(path string) [2]string { return [2]string{"files/" + id + "/" + path, "x"} }
	registry := entity.NewRegistry()
	is.NoErr(registry.Add(twoKinds(t, w)...))
	s, err := bundles.New(bundles.Options{Content: registry, Store: panicking{}})
	is.NoErr(err)
	for name, c := range map[string]struct {
		members []([2]string)
		message string // "" when an import begins
	}{
		"whole": {[]([2]string){header(`"library": 1`), library, file("a/b"), file("a-c"), file("a.d")}, ""},
		"folder": {
			[]([2]string){header(`"library": 1`), library, file("a"), file("a-c"), file("a/b")},
			`"files/` + id + `/a" is a file, and a folder`,
		},
		"folder by case": {
			[]([2]string){header(`"library": 1`), library, file("a/b/c"), file("A/B")},
			`"files/` + id + `/A/B" is a file, and a folder`,
		},
		"case": {
			[]([2]string){header(`"library": 1`), library, file("a"), file("A")},
			`"files/` + id + `/A" is there twice`,
		},
		"two of one id": {
			[]([2]string){header(`"library": 1, "site": 1`), library, site, file("a")},
			"The archive's site " + id + " has the id of an item",
		},
		"other way round": {
			[]([2]string){header(`"library": 1, "site": 1`), site, library},
			"The archive's library " + id + " has the id of an item",
		},
		"column twice": {[]([2]string){
			header(`"library": 1`), {library[0], `{"ownerId": "jo", "name": "x", "ownerId": "eve"}`},
		},
			`"entities/library/` + id + `.json" gives "ownerId" twice`},
		"column twice, escaped": {
			[]([2]string){header(`"library": 1`), {library[0], `{"name": "x", "n\u0061me": "y"}`}},
			`gives "name" twice`,
		},
	} {
		for _, call := range []func(ctx, *bytes.Reader) error{
			func(ctx ctx, r *bytes.Reader) error { _, err := s.Import(ctx, r, bundles.ImportOptions{}); return err },
			func(ctx ctx, r *bytes.Reader) error { _, err := s.Restore(ctx, r, bundles.ImportOptions{}); return err },
		} {
			err := call(w.as(t, "acme"), bytes.NewReader(raw(t, c.members...)))
			want := errs.Invalid
			if c.message == "" {
				want = errs.Unauthenticated // the transaction was reached
			}
			if errs.CodeOf(err) != want || !strings.Contains(errs.MessageOf(err), c.message) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestTwoOfOneIDDoNotTravel: an archive that could not be read again is not written.
func TestTwoOfOneIDDoNotTravel(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	w := newWorld(t, db)
	types := twoKinds(t, w)
	site := types[len(types)-1]
	host := opened(t, db, func(c *tenantcontent.Config) {
		c.BundleDrivers = []bundles.Driver{own{
			bundles.Descriptor{
				ID:     "site",
				Name:   "host:site",
				Column: "siteId",
				Icon:   bundles.Icon{Name: "x"},
				Editor: "x",
			},
			[]entity.Type{site},
		}}
	})
	id := w.make(t, "acme", "library", "L", `{}`)
	e, err := host.Bundles.ExportManifest(w.as(t, "acme"), bundles.Manifest{
		Entries: []bundles.Entry{{Type: "library", EntityID: id}, {Type: "site", EntityID: id}},
	})
	is.NoErr(err)
	var b bytes.Buffer
	err = e.Write(w.as(t, "acme"), &b)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.Contains(errs.MessageOf(err), id))
}
