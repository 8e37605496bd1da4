package archive_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// item is a row, or a file if it has a path, of a test archive.
type item struct {
	kind, id, path, content, contentType string
}

var items = []item{
	{kind: "user", id: "jo@example.com", content: `{"a": 1}`},
	{kind: "user", id: "JO@example.com", content: `{}`}, // not a duplicate: ids are escaped
	{kind: "color", id: "brand/primary 100%", content: `{"b": "<&>"}`},
	{kind: "color", id: "..", content: `{}`},
	{kind: "color", id: ".", content: `{}`},
	{kind: "color", id: "grün \\ \" : * ? é é", content: `{}`},
	{kind: "color", id: strings.Repeat("Ü", 255), content: `{"x": "\\u0000"}`},
	{kind: "library", id: "0190163d-8694-739b-aea5-966c26f8ad91", content: `{}`},
	{
		id:          "0190163d-8694-739b-aea5-966c26f8ad91",
		path:        "README.md",
		content:     "# Hello\x00",
		contentType: "text/markdown",
	},
	{id: "0190163d-8694-739b-aea5-966c26f8ad91", path: "README", content: ""},
	{
		id:          "0190163d-8694-739b-aea5-966c26f8ad91",
		path:        "src/100%/ü é.js",
		content:     "x",
		contentType: "text/javascript; charset=utf-8",
	},
	{id: "0190163d-8694-739b-aea5-966c26f8ad91", path: strings.Repeat("long/", 60) + "a", content: "y"},
}

func header(all []item) archive.Header {
	h := archive.Header{Tenant: "acme", Bundle: archive.Bundle{Name: "Sales"}, Counts: map[entity.Kind]int{"empty": 0}}
	for _, p := range all {
		if p.path == "" {
			h.Counts[entity.Kind(p.kind)]++
		}
	}
	return h
}

func pack(t testing.TB, all []item) []byte {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	w, err := archive.NewWriter(&b, header(all), archive.Limits{})
	is.NoErr(err)
	for _, p := range all {
		if p.path == "" {
			is.NoErr(w.Row(entity.Row{Key: entity.Key{Kind: entity.Kind(p.kind), ID: p.id}, JSON: []byte(p.content)}))
		} else {
			f := entity.File{Path: p.path, ContentType: p.contentType, Size: int64(len(p.content))}
			is.NoErr(w.File(p.id, f, strings.NewReader(p.content)))
		}
	}
	is.NoErr(w.Close())
	return b.Bytes()
}

// unpack reads an archive to its end.
func unpack(r io.Reader, l archive.Limits) (all []item, err error) {
	a, err := archive.NewReader(r, l)
	if err != nil {
		return nil, err
	}
	for {
		m, err := a.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		p := item{kind: string(m.Kind), id: m.ID, content: string(m.JSON)}
		if m.File != nil {
			content, err := io.ReadAll(a)
			if err != nil {
				return all, err
			}
			p.path, p.content, p.contentType = m.File.Path, string(content), m.File.ContentType
		}
		all = append(all, p)
	}
}

func TestRoundTrip(t *testing.T) {
	is := is.New(t)
	packed := pack(t, items)
	is.Equal(pack(t, items), packed) // the same bytes
	for name, r := range map[string]io.Reader{
		"whole":    bytes.NewReader(packed),
		"bytewise": iotest.OneByteReader(bytes.NewReader(packed)), "halves": iotest.HalfReader(bytes.NewReader(packed)),
		"end with data": iotest.DataErrReader(bytes.NewReader(packed)),
	} {
		all, err := unpack(r, archive.Limits{})
		if err != nil {
			t.Fatal(name, err)
		}
		is.Equal(all, items)
	}
	a, err := archive.NewReader(bytes.NewReader(packed), archive.Limits{})
	is.NoErr(err)
	is.Equal(a.Header().Tenant, "acme")
	is.Equal(a.Header().Counts["color"], 5)
	for range items { // the bytes of skipped files count, too
		_, err := a.Next()
		is.NoErr(err)
	}
	_, err = a.Next()
	is.Equal(err, io.EOF)
	_, err = a.Next()
	is.Equal(err, io.EOF)
}

// TestTightContentSize: the archive of content that packs very well does not look like a bomb.
func TestTightContentSize(t *testing.T) {
	is := is.New(t)
	var all []item
	for n := range 3000 {
		all = append(all, item{kind: "tag", id: fmt.Sprint(n), content: `{"x": "` + strings.Repeat("x", 10_000) + `"}`})
	}
	for _, c := range []string{
		strings.Repeat("\x00", 50<<20), random(2<<20) + strings.Repeat("y", 9<<20) + random(1<<20),
	} {
		all = append(all, item{id: "1", path: fmt.Sprint(len(all)), content: c})
	}
	packed := pack(t, all)
	got, err := unpack(bytes.NewReader(packed), archive.Limits{})
	is.NoErr(err)
	is.True(slices.Equal(got, all))
	is.True(len(packed) < 4<<20)
	c := exec.Command("gzip", "-t")
	c.Stdin = bytes.NewReader(packed)
	is.NoErr(c.Run())
}

// TestTarReadsIt: tar can read an archive.
func TestTarReadsIt(t *testing.T) {
	is := is.New(t)
	c := exec.Command("tar", "tzf", "-")
	c.Stdin = bytes.NewReader(pack(t, items))
	out, err := c.Output()
	is.NoErr(err)
	names := strings.Split(strings.TrimSpace(string(out)), "\n")
	is.Equal(names[0], "bundle.json")
	is.Equal(names[1], "entities/user/jo%40example.com.json")
	is.Equal(names[len(names)-1], "checksums.json")
	is.True(slices.Contains(names, "entities/color/%2e..json"))
	for _, n := range names {
		is.True(filepath.IsLocal(n))
	}
}

// raw is a member of an archive that a test writes itself.
type raw struct {
	tar.Header
	content string
}

func member(name, content string) raw { return raw{tar.Header{Name: name}, content} }

const good = `{"format": "tenantcontent-bundle", "version": 1, "tenant": "acme", "bundle": {"name": "x"}, ` +
	`"entries": [], "counts": {"color": 1}}`

var first, red, id = member("bundle.json", good), member(
	"entities/color/red.json", `{}`,
), "0190163d-8694-739b-aea5-966c26f8ad91"

// with changes the header of a member.
func (r raw) with(change func(h *tar.Header)) raw {
	h := r.Header
	change(&h)
	return raw{h, r.content}
}

// sums returns a checksums.json for members; change may change it.
func sums(all []raw, change ...func(map[string]string)) raw {
	m := map[string]string{}
	for _, r := range all {
		s := sha256.Sum256([]byte(r.content))
		m[r.Name] = hex.EncodeToString(s[:])
	}
	for _, f := range change {
		f(m)
	}
	text, _ := json.Marshal(m)
	return member("checksums.json", string(text))
}

func tarred(t testing.TB, all ...raw) []byte {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, r := range all {
		h := r.Header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		h.Mode, h.Size = 0o644, int64(len(r.content))
		if h.Typeflag == tar.TypeXGlobalHeader {
			h.Mode = 0
		}
		is.NoErr(w.WriteHeader(&h))
		_, err := io.WriteString(w, r.content)
		is.NoErr(err)
	}
	is.NoErr(w.Close())
	return b.Bytes()
}

func zipped(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

func made(t testing.TB, all ...raw) []byte { return zipped(tarred(t, append(all, sums(all))...)) }

func TestHandMadeIsRead(t *testing.T) {
	all, err := unpack(bytes.NewReader(made(t, first, red, member("files/"+id+"/a/b.txt", "x"))), archive.Limits{})
	is.New(t).NoErr(err)
	is.New(t).Equal(len(all), 2)
	padded := append(tarred(t, first, red, sums([]raw{first, red})), make([]byte, 8<<10)...) // as tar pads
	_, err = unpack(bytes.NewReader(zipped(padded)), archive.Limits{})
	is.New(t).NoErr(err)
}

// TestRepacked reads archives that were unpacked, and packed again with tar.
func TestRepacked(t *testing.T) {
	is := is.New(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "archive.tgz")
	is.NoErr(os.WriteFile(file, pack(t, []item{
		{kind: "tag", id: "grün \" é", content: "{}"},
		{kind: "color", id: "red", content: "{}"}, {kind: "library", id: id, content: "{}"},
		{id: id, path: strings.Repeat("long/", 30) + "ü b.js", content: "y", contentType: "text/javascript"},
	}), 0o600))
	unpacked := filepath.Join(folder, "unpacked")
	is.NoErr(os.Mkdir(unpacked, 0o700))
	run := func(command string) {
		t.Helper()
		c := exec.Command("bash", "-ec", command)
		c.Dir = unpacked
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	run("tar -xzf ../archive.tgz 2>/dev/null")
	_, command, _ := strings.Cut(archive.Repack, "run: ")
	for _, c := range []struct{ command, message string }{
		{command, ""},
		{"tar czf ../archive.tgz bundle.json entities/tag entities/color entities/library files checksums.json", ""},
		{"tar czf ../archive.tgz ./bundle.json ./entities/*/* ./files ./checksums.json", ""},
		{"tar --format=pax -czf ../archive.tgz bundle.json entities/*/* files checksums.json", ""},
		{"tar --format=posix --xattrs -czf ../archive.tgz bundle.json entities/*/* files checksums.json", ""},
		{"tar --format=oldgnu -czf ../archive.tgz bundle.json entities/*/* files checksums.json", ""},
		{"tar --sort=name -czf ../archive.tgz .", archive.Repack}, // files come after checksums.json then
		{"tar czf ../archive.tgz checksums.json bundle.json entities files", archive.Repack},
		{"tar czf ../archive.tgz bundle.json checksums.json entities files", archive.Repack},
		{"tar czf ../archive.tgz bundle.json files entities checksums.json", archive.Repack},
		{"tar czf ../archive.tgz bundle.json entities files", archive.Repack},
		{
			"echo >> entities/color/red.json && tar czf ../archive.tgz bundle.json entities files checksums.json",
			"does not fit its checksum",
		},
	} {
		run(c.command)
		packed, err := os.ReadFile(file)
		is.NoErr(err)
		all, err := unpack(bytes.NewReader(packed), archive.Limits{})
		if c.message == "" && (err != nil || len(all) != 4) || c.message != "" &&
			!strings.Contains(errs.MessageOf(err), c.message) {
			t.Errorf("%s: %d, %v", c.command, len(all), err)
		}
	}
}

// TestHostile: archives that must be refused, with the part of the message that names the error.
func TestHostile(t *testing.T) {
	whole := made(t, first, red)
	zeros := strings.Repeat("\x00", 8<<20)
	typed := func(flag byte, name, link string) raw {
		return raw{tar.Header{Name: name, Typeflag: flag, Linkname: link}, ""}
	}
	row := func(content string) []byte { return made(t, first, member("entities/color/red.json", content)) }
	named := func(name string) []byte { return made(t, first, member(name, "{}")) }
	begun := func(header string) []byte { return made(t, member("bundle.json", header), red) }
	for name, c := range map[string]struct {
		file    []byte
		message string
	}{
		"nothing":           {nil, "not gzip"},
		"a text":            {[]byte("hello, world"), "not gzip"},
		"a zip":             {[]byte("PK\x03\x04aaaaaaaaaaaaaaaaaaaaaaa"), "not gzip"},
		"a bare tar":        {tarred(t, first, red, sums([]raw{first, red})), "not gzip"},
		"gzip of nothing":   {zipped(nil), "cut off"},
		"gzip of a text":    {zipped([]byte(strings.Repeat("hello", 500))), "damaged"},
		"empty tar":         {zipped(tarred(t)), "cut off"},
		"cut in gzip":       {whole[:len(whole)/2], "cut off"},
		"cut in trailer":    {whole[:len(whole)-1], "cut off"},
		"cut in header":     {whole[:9], "not gzip"},
		"bit flipped":       {flipped(whole, len(whole)/2), ""},
		"gzip sum flipped":  {flipped(whole, len(whole)-6), "damaged"},
		"junk after":        {append(slices.Clone(whole), "junk"...), "goes on after the archive"},
		"zeros after":       {append(slices.Clone(whole), 0), "goes on after the archive"},
		"second gzip":       {append(slices.Clone(whole), whole...), "goes on after the archive"},
		"empty second gzip": {append(slices.Clone(whole), zipped(nil)...), "goes on after the archive"},
		"junk in gzip": {
			zipped(append(tarred(t, first, red, sums([]raw{first, red})), "junk"...)), "goes on after its end",
		},
		"long zeros": {
			zipped(append(tarred(t, first, red, sums([]raw{first, red})), make([]byte, 65<<10)...)),
			"goes on after its end",
		},
		"second tar": {
			zipped(append(tarred(t, first, red, sums([]raw{first, red})), tarred(t, first)...)),
			"goes on after its end",
		},

		"no format":      {begun(`{"version": 1}`), "format"},
		"other format":   {begun(`{"format": "zip", "version": 1}`), "format"},
		"newer":          {begun(strings.Replace(good, `"version": 1`, `"version": 2`, 1)), "version 2"},
		"older":          {begun(strings.Replace(good, `"version": 1`, `"version": 0`, 1)), "version 0"},
		"header no JSON": {begun(`{`), `"bundle.json" is not a JSON object`},
		"header wrong": {
			begun(strings.Replace(good, `"entries": []`, `"entries": 5`, 1)), "bundle.json cannot be read",
		},
		"negative count": {begun(strings.Replace(good, `"color": 1`, `"color": -1`, 1)), "counts -1"},
		"fewer rows":     {begun(strings.Replace(good, `"color": 1`, `"color": 2`, 1)), "bundle.json counts 2"},
		"more rows": {
			begun(strings.Replace(good, `"color": 1`, `"color": 0`, 1)),
			`"entities/color/red.json" is one more`,
		},
		"uncounted kind": {
			begun(strings.Replace(good, `"color": 1`, `"tag": 0`, 1)), `"entities/color/red.json" is one more`,
		},
		"header not 1st": {made(t, red, first), `"entities/color/red.json" is first`},
		"header twice": {
			zipped(tarred(t, first, red, first, sums([]raw{first, red}))), `"bundle.json" is there twice`,
		},
		"no header":   {made(t, red), "is first"},
		"sums first":  {zipped(tarred(t, sums(nil), first, red)), `"checksums.json" is first`},
		"huge header": {begun(`{"x": "` + strings.Repeat("x", 17<<20) + `"}`), ""},
		"files before": {
			zipped(tarred(t, first, member("files/"+id+"/a", ""), red)),
			`"entities/color/red.json" is out of order`,
		},
		"kinds mixed": {
			zipped(tarred(
				t, member("bundle.json", strings.Replace(good, `"color": 1`, `"color": 2, "tag": 1`, 1)), red,
				member("entities/tag/a.json", "{}"), member("entities/color/b.json", "{}"),
			)),
			`"entities/color/b.json" is out of order`,
		},
		"after the sums": {
			zipped(tarred(t, first, red, sums([]raw{first, red}), member("entities/tag/x.json", "{}"))),
			`"entities/tag/x.json" comes after`,
		},
		"no sums": {zipped(tarred(t, first, red)), "no checksums.json"},
		"sum wrong": {zipped(tarred(t, first, red, sums([]raw{first, red}, func(m map[string]string) {
			m[red.Name] = strings.Repeat("0", 64)
		}))), `"entities/color/red.json" does not fit`},
		"sum upper case": {zipped(tarred(t, first, red, sums([]raw{first, red}, func(m map[string]string) {
			m[red.Name] = strings.ToUpper(m[red.Name])
		}))), `does not fit`},
		"sum missing": {
			zipped(tarred(t, first, red, sums([]raw{first}))), `"entities/color/red.json" has no checksum`,
		},
		"sum too many": {zipped(tarred(t, first, red, sums([]raw{first, red, member("x", "")}))), `names "x"`},
		"sums no JSON": {
			zipped(tarred(t, first, red, member("checksums.json", "{"))), "checksums.json cannot be read",
		},
		"sums an array": {
			zipped(tarred(t, first, red, member("checksums.json", "[]"))), "checksums.json cannot be read",
		},
		"sums go on": {
			zipped(tarred(t, first, red, member("checksums.json", sums([]raw{first, red}).content+"{}"))),
			"checksums.json cannot be read",
		},
		"sums of numbers": {
			zipped(tarred(t, first, red, member("checksums.json", `{"bundle.json": 1}`))),
			`"bundle.json" does not fit`,
		},

		"absolute":        {named("/etc/passwd"), `"/etc/passwd" has an absolute path`},
		"absolute file":   {named("files/" + id + "//etc/passwd"), "not clean"},
		"dots":            {named("../../etc/passwd"), `"../../etc/passwd" has a path that is not clean`},
		"dots inside":     {named("entities/color/../../../x.json"), "not clean"},
		"dots in a file":  {named("files/" + id + "/../../x"), "not clean"},
		"escaped dots":    {named("files/" + id + "/%2e%2e/x"), "is not one"},
		"escaped slash":   {named("files/" + id + "/a%2fb"), "is not one"},
		"escaped up":      {named("files/" + id + "/%2e%2e%2fx"), "is not one"},
		"a dot":           {named("./bundle2.json"), "not one that an archive has"},
		"empty segment":   {named("entities//red.json"), "not clean"},
		"backslash":       {named(`files/` + id + `/..\..\x`), "backslash"},
		"escaped NUL":     {named("entities/color/a%00.json"), "is not one"},
		"bad escape":      {named("entities/color/%zz.json"), "is not one"},
		"half escape":     {named("entities/color/a%4.json"), "is not one"},
		"upper escape":    {named("entities/color/%2F.json"), "is not one"},
		"needless escape": {named("entities/color/%61.json"), "is not one"},
		"capital id":      {named("entities/color/Red.json"), "is not one"},
		"no id":           {named("entities/color/.json"), "is not one"},
		"no kind":         {named("entities/red.json"), "is not one"},
		"deep row":        {named("entities/color/a/b.json"), "is not one"},
		"other folder":    {named("etc/passwd"), "is not one"},
		"not JSON name":   {named("entities/color/red.txt"), "is not one"},
		"file of no id":   {named("files//x"), "not clean"},
		"file alone":      {named("files/x"), "not clean"},
		"long name":       {named("entities/color/" + strings.Repeat("a", 5000) + ".json"), "too long a name"},
		"not UTF-8":       {zipped(latin(tarred(t, first, member("files/x/caf?", "")))), ""},

		"symlink": {
			zipped(tarred(t, first, typed(tar.TypeSymlink, "entities/color/red.json", "/etc/passwd"))),
			`"entities/color/red.json" is not a plain file`,
		},
		"hard link": {
			zipped(tarred(t, first, typed(tar.TypeLink, "entities/color/red.json", "bundle.json"))),
			"not a plain file",
		},
		"device": {
			zipped(tarred(t, first, typed(tar.TypeChar, "entities/color/red.json", ""))), "not a plain file",
		},
		"block": {
			zipped(tarred(t, first, typed(tar.TypeBlock, "entities/color/red.json", ""))), "not a plain file",
		},
		"fifo": {
			zipped(tarred(t, first, typed(tar.TypeFifo, "entities/color/red.json", ""))), "not a plain file",
		},
		"folder": {
			zipped(tarred(t, first, raw{tar.Header{Name: "entities/", Typeflag: tar.TypeDir, Linkname: "x"}, ""})),
			"no checksums.json",
		},
		"global": {
			zipped(tarred(t, first, raw{
				tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"path": "x"}},
				"",
			})),
			"not a plain file",
		},
		"GNU sparse": {zipped(sparse(tarred(t, first, red, sums([]raw{first, red})))), ""},
		"PAX times": {made(t, first, red.with(func(h *tar.Header) {
			h.PAXRecords = map[string]string{"ACME.user.a": "x"}
		})), `"entities/color/red.json" has the extended header "ACME.user.a"`},
		"PAX size":   {zipped(paxed(t, "27 size=99999999999999999\n")), ""},
		"PAX sparse": {zipped(paxed(t, "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n")), ""},
		"PAX path":   {zipped(paxed(t, "20 path=/etc/passwd\n")), "absolute"},
		"PAX link":   {zipped(paxed(t, "24 linkpath=/etc/passwd\n")), "not a plain file"},
		"bad type": {made(t, first, red, member("files/"+id+"/a", "").with(func(h *tar.Header) {
			h.PAXRecords = map[string]string{"TENANTCONTENT.contentType": strings.Repeat("x", 300)}
		})), "content type"},

		"folder of a file": {made(
			t, first, red, member("files/"+id+"/a", ""), member("files/"+id+"/a-b", ""),
			member("files/"+id+"/a/b", ""),
		),
			`"files/` + id + `/a" is a file, and a folder of "files/` + id + `/a/b" too`},
		"file of a folder": {
			made(t, first, red, member("files/"+id+"/a/b/c", ""), member("files/"+id+"/A/B", "")),
			`/A/B" is a file, and a folder of`,
		},
		"long PAX record": {
			zipped(paxed(t, pax("ACME."+strings.Repeat("x", 9000), "x"))), "has the extended header",
		},
		"many PAX records": {
			zipped(paxed(t, strings.Repeat(pax("path", "entities/color/red.json"), 1000))),
			`member behind "bundle.json" has more than 16384 bytes`,
		},
		"PAX at the begin": {
			zipped(paxed(t, strings.Repeat(pax("path", "bundle.json"), 1000))[1024:]),
			`member behind "the beginning" has more than 16384 bytes`,
		},
		"other twin escape": {named("files/" + id + "/%52%45%41"), "is not one"},
		"column twice":      {row(`{"name": "a", "name": "b"}`), `"entities/color/red.json" gives "name" twice`},
		"escaped twice":     {row(`{"name": "a", "n\u0061me": "b"}`), `"entities/color/red.json" gives "name" twice`},
		"header says twice": {
			begun(strings.Replace(good, `"version": 1`, `"version": 1, "version": 1`, 1)),
			`"bundle.json" gives "version" twice`,
		},
		"long kind": {
			begun(strings.Replace(good, `"color": 1`, `"`+strings.Repeat("k", 9000)+`": -1`, 1)),
			"counts -1 of",
		},
		"long missing kind": {
			begun(strings.Replace(good, `"color": 1`, `"color": 1, "`+strings.Repeat("k", 9000)+`": 1`, 1)),
			"has 0 rows of kkk",
		},
		"long name in a sum": {
			zipped(tarred(t, first, red, member("checksums.json", `{"`+strings.Repeat("a", 500)+`": "x"}`))),
			`names "aaa`,
		},
		"sums are cut off": {
			zipped(tarred(t, first, red, member("checksums.json", `{"bundle.json": `))),
			"does not fit its checksum",
		},
		"sums and null": {
			zipped(tarred(t, first, red, member("checksums.json", sums([]raw{first, red}).content+"null"))),
			"checksums.json cannot be read",
		},

		"twice": {zipped(tarred(t, first, red, red)), `"entities/color/red.json" is there twice`},
		"file twice": {
			zipped(tarred(t, first, red, member("files/"+id+"/a", ""), member("files/"+id+"/a", ""))),
			"is there twice",
		},
		"case twin": {
			zipped(tarred(t, first, red, member("files/"+id+"/a", ""), member("files/"+id+"/A", ""))),
			"differs in case",
		},
		"Unicode twin": {
			zipped(tarred(t, first, red, member("files/"+id+"/é", ""), member("files/"+id+"/e\u0301", ""))),
			"differs in case",
		},
		"case of sharp": {
			zipped(tarred(t, first, red, member("files/"+id+"/straße", ""), member("files/"+id+"/STRASSE", ""))),
			"differs in case",
		},
		"header twin": {zipped(tarred(t, first, member("Bundle.json", good))), "differs in case"},

		"row no JSON":     {row(`{`), `"entities/color/red.json" is not a JSON object`},
		"row an array":    {row(`[]`), "not a JSON object"},
		"row a text":      {row(`"x"`), "not a JSON object"},
		"row empty":       {row(``), "not a JSON object"},
		"row two":         {row(`{}{}`), "not a JSON object"},
		"row not UTF-8":   {row("{\"a\": \"\xff\"}"), "not a JSON object"},
		"row with NUL":    {row(`{"a": "\u0000"}`), "NUL"},
		"row with half":   {row(`{"a": "\ud800x"}`), "surrogate"},
		"row with a NUL2": {row(`{"a": "\\\u0000"}`), "NUL"},
		"row too long":    {row(`{"a": "` + random(5<<20) + `"}`), `bytes: at most 4194304 are allowed`},
		"bomb in a file":  {zipped(tarred(t, first, red, member("files/"+id+"/a", zeros))), "more than 200 times"},
		"bomb after": {
			zipped(append(tarred(t, first, red, sums([]raw{first, red})), zeros...)), "goes on after its end",
		},
		"bomb in a sum": {
			zipped(tarred(t, first, red, member("checksums.json", "{"+strings.Repeat(" ", 8<<20)+"}"))),
			`"checksums.json" has 8388610 bytes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := unpack(bytes.NewReader(c.file), archive.Limits{})
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.Contains(errs.MessageOf(err), c.message) || len(errs.MessageOf(err)) > 700 {
				t.Errorf("%v", err)
			}
			_, again := unpack(iotest.OneByteReader(bytes.NewReader(c.file)), archive.Limits{})
			is.Equal(errs.MessageOf(again), errs.MessageOf(err))
		})
	}
}

func flipped(file []byte, at int) []byte {
	file = slices.Clone(file)
	file[at] ^= 0x10
	return file
}

// latin replaces a name in a tar by one that is not UTF-8. The checksum of its header stays valid.
func latin(t []byte) []byte {
	return bytes.Replace(t, []byte("files/x/caf?"), []byte("files/x/ca\xe5\xc0")[:12:12], 1)
}

// sparse makes the second member a sparse file of GNU tar.
func sparse(file []byte) []byte {
	h := file[1024 : 1024+512]
	h[156] = 'S'
	copy(h[257:], "ustar  \x00")
	return resummed(file, 1024)
}

func resummed(file []byte, at int) []byte {
	h := file[at : at+512]
	copy(h[148:156], "        ")
	n := 0
	for _, c := range h {
		n += int(c)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", n))
	return file
}

// paxed returns an archive whose second member has these extended records.
func paxed(t testing.TB, records string) []byte {
	file := tarred(t, first, raw{tar.Header{Name: "PaxHeaders.0/x"}, records}, red, sums([]raw{first, red}))
	file[1024+156] = 'x'
	return resummed(file, 1024)
}

// TestLargeFile: a file of 8 GiB or more, whose size tar writes into an extended record, can be
// written and read, if the limits allow it. A smaller one has no such record.
func TestLargeFile(t *testing.T) {
	is := is.New(t)
	var b bytes.Buffer
	wide := archive.Limits{Bytes: 64 << 30}
	w, err := archive.NewWriter(&b, archive.Header{}, wide)
	is.NoErr(err)
	begin := io.LimitReader(rand.NewChaCha8([32]byte{}), 1<<20)
	is.True(w.File("1", entity.File{Path: "a", Size: 9 << 30}, begin) != nil) // the rest is missing
	a, err := archive.NewReader(&b, wide)
	is.NoErr(err)
	m, err := a.Next()
	is.NoErr(err)
	is.Equal(*m.File, entity.File{Path: "a", Size: 9 << 30})

	for _, c := range []struct {
		size    int64
		limits  archive.Limits
		message string
	}{
		{8 << 30, wide, "The archive is cut off."}, // it was accepted
		{
			8 << 30, archive.Limits{},
			`"files/1/a" has 8589934592 bytes: an archive must not have more than 4294967296 bytes when it is unpacked`,
		},
		{1<<63 - 1, wide, `"files/1/a" has 9223372036854775807 bytes`},
		{64<<30 - 1024, wide, "bytes when it is unpacked"}, // including what precedes it
		{8<<30 - 1, wide, `has the extended header "size"`},
		{0, wide, `has the extended header "size"`},
		{-1, wide, "damaged"},
	} {
		file := paxed(t, pax("path", "files/1/a")+pax("size", fmt.Sprint(c.size)))
		_, err := unpack(bytes.NewReader(zipped(file)), c.limits)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		if !strings.Contains(errs.MessageOf(err), c.message) {
			t.Errorf("%d: %v", c.size, err)
		}
	}
}

func random(n int) string {
	b := make([]byte, n/2)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return hex.EncodeToString(b)
}

func TestLimits(t *testing.T) {
	is := is.New(t)
	file := pack(t, items)
	members := len(items) + 2
	for _, c := range []struct {
		limits archive.Limits
		ok     bool
	}{
		{archive.Limits{Members: members}, true},
		{archive.Limits{Members: members - 1}, false}, {archive.Limits{Bytes: 2000}, false},
		{archive.Limits{Row: 16}, true}, {archive.Limits{Row: 15}, false},
	} {
		_, err := unpack(bytes.NewReader(file), c.limits)
		is.Equal(err == nil, c.ok)
		is.True(err == nil || errs.CodeOf(err) == errs.Invalid)
	}
}

// TestBrokenSource: an error of the source is not an error of the archive.
func TestBrokenSource(t *testing.T) {
	is, broken := is.New(t), errors.New("broken")
	file := pack(t, append(slices.Clone(items), item{id: items[7].id, path: "z", content: random(300_000)}))
	for _, n := range []int{0, 5, 100, 1000, len(file) - 5, len(file)} {
		_, err := unpack(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken)), archive.Limits{})
		is.Equal(err, broken)
	}
}

func TestWriterRefuses(t *testing.T) {
	row := func(kind, id, content string) entity.Row {
		return entity.Row{Key: entity.Key{Kind: entity.Kind(kind), ID: id}, JSON: []byte(content)}
	}
	for name, write := range map[string]func(w *archive.Writer) error{
		"row twice": func(w *archive.Writer) error {
			return errors.Join(w.Row(row("a", "x", "{}")), w.Row(row("a", "x", "{}")))
		},
		"kinds mixed": func(w *archive.Writer) error {
			return errors.Join(w.Row(row("a", "x", "{}")), w.Row(row("b", "x", "{}")), w.Row(row("a", "y", "{}")))
		},
		"long row":  func(w *archive.Writer) error { return w.Row(row("a", "x", strings.Repeat("x", 5<<20))) },
		"uncounted": func(w *archive.Writer) error { return errors.Join(w.Row(row("a", "x", "{}")), w.Close()) },
		"short file": func(w *archive.Writer) error {
			return w.File("x", entity.File{Path: "a", Size: 2}, strings.NewReader("x"))
		},
		"long file": func(w *archive.Writer) error {
			return w.File("x", entity.File{Path: "a", Size: 1}, strings.NewReader("xx"))
		},
		"path": func(w *archive.Writer) error { return w.File("x", entity.File{Path: "../a"}, strings.NewReader("")) },
		"late row": func(w *archive.Writer) error {
			return errors.Join(w.File("x", entity.File{Path: "a"}, strings.NewReader("")), w.Row(row("a", "x", "{}")))
		},
		"file broken": func(w *archive.Writer) error {
			return w.File("x", entity.File{Path: "a", Size: 1}, iotest.ErrReader(errors.New("broken")))
		},
	} {
		w, err := archive.NewWriter(io.Discard, archive.Header{}, archive.Limits{})
		is.New(t).NoErr(err)
		if write(w) == nil {
			t.Error(name)
		}
	}
}

// FuzzReader: the reader ends for all inputs, and the writer writes what it has read.
func FuzzReader(f *testing.F) {
	f.Add(pack(f, items))
	f.Add(made(f, first, red))
	f.Add(zipped(paxed(f, "20 path=/etc/passwd\n")))
	f.Add([]byte{})
	limits := archive.Limits{Members: 100, Bytes: 8 << 20, Row: 1 << 20}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, file := range [][]byte{file, zipped(file)} { // fuzz the tar rather than the gzip
			all, err := unpack(bytes.NewReader(file), limits)
			if err != nil {
				if errs.CodeOf(err) != errs.Invalid {
					t.Fatalf("%v", err)
				}
				continue
			}
			for _, p := range all {
				if p.path != "" && !filepath.IsLocal(p.path) {
					t.Fatalf("%q leads out", p.path)
				}
			}
			again, err := unpack(bytes.NewReader(pack(t, all)), limits)
			if err != nil || !slices.Equal(all, again) {
				t.Fatalf("%v %v", err, again)
			}
		}
	})
}
