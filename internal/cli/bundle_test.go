package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// shipped is a server with a bundle of one report, which needs one dataset.
type shipped struct {
	*server
	flags           []string // of the client commands
	dataset, report string
}

func ship(t *testing.T) *shipped {
	t.Helper()
	s := &shipped{server: serving(t, "--data="+t.TempDir(), "--admin-password="+password)}
	token := s.login(t, "default", "admin", password)
	s.flags = []string{"--server=" + s.url, "--token=" + token}
	create := func(path, body string) string {
		status, text := call(t, "POST", s.url+"/api/"+path, token, body)
		is.New(t).Equal(status, 201)
		return field(t, text, "id")
	}
	s.dataset = create("datasets", `{"name": "Orders"}`)
	s.report = create("reports", `{"name": "Sales", "data": {"datasetId": "`+s.dataset+`"}}`)
	create("bundles", `{"name": "Sales"}`)
	create("bundles/sales/entries", `{"type": "report", "reportId": "`+s.report+`"}`)
	return s
}

// drop deletes the report on the server.
func (s *shipped) drop(t *testing.T) {
	t.Helper()
	status, _ := call(t, "DELETE", s.url+"/api/reports/"+s.report, strings.TrimPrefix(s.flags[1], "--token="), "")
	is.New(t).Equal(status, 200)
}

func (s *shipped) bundle(args ...string) []string {
	return append(append([]string{"bundle"}, args...), s.flags...)
}

func TestBundleThereAndBack(t *testing.T) {
	is, s := is.New(t), ship(t)
	file := filepath.Join(t.TempDir(), "sales.tgz")
	is.True(strings.HasPrefix(done(t, "", s.bundle("export", file, "--bundle=sales")...), "Wrote "+file))
	same := done(t, "", s.bundle("export", "-", "--bundle=sales")...)
	written, err := os.ReadFile(file)
	is.NoErr(err)
	is.Equal(string(written), same) // the same bytes each time

	s.drop(t)
	added := "+ report " + s.report + " \"Sales\"\n"
	counts := "dataset        0 created, 0 updated, 1 unchanged, 0 skipped, 0 deleted\n" +
		"report         1 created, 0 updated, 0 unchanged, 0 skipped, 0 deleted\n" +
		"total          1 created, 0 updated, 1 unchanged, 0 skipped, 0 deleted\n"
	is.Equal(done(t, "", s.bundle("diff", file)...), added+counts)
	is.Equal(done(t, same, s.bundle("diff", "-")...), added+counts) // the diff changed nothing
	is.Equal(done(t, same, s.bundle("import", "-")...), "dataset        0 created, 0 updated, 1 skipped, 0 deleted\n"+
		"report         1 created, 0 updated, 0 skipped, 0 deleted\n"+
		"total          1 created, 0 updated, 1 skipped, 0 deleted\n")
	is.Equal(done(t, "", s.bundle("import", file, "--update-rule=overwrite")...),
		"dataset        0 created, 1 updated, 0 skipped, 0 deleted\n"+
			"report         0 created, 1 updated, 0 skipped, 0 deleted\n"+
			"total          0 created, 2 updated, 0 skipped, 0 deleted\n")
}

// TestBundleDiff: a diff distinguishes what an import would change from what it would not.
func TestBundleDiff(t *testing.T) {
	is, s := is.New(t), ship(t)
	file := filepath.Join(t.TempDir(), "sales.tgz")
	done(t, "", s.bundle("export", file, "--bundle=sales")...)
	diff := func(more ...string) string {
		return done(t, "", s.bundle(append([]string{"diff", file, "--update-rule=overwrite"}, more...)...)...)
	}
	is.Equal(diff(), "dataset        0 created, 0 updated, 1 unchanged, 0 skipped, 0 deleted\n"+
		"report         0 created, 0 updated, 1 unchanged, 0 skipped, 0 deleted\n"+
		"total          0 created, 0 updated, 2 unchanged, 0 skipped, 0 deleted\n")
	for _, rule := range []string{"skip", "fail"} {
		is.True(strings.HasSuffix(done(t, "", s.bundle(
			"diff", file, "--update-rule="+rule,
		)...), "total          0 created, 0 updated, 2 unchanged, 0 skipped, 0 deleted\n"+
			map[string]string{
				"fail": "An import with --update-rule=fail stops at the rows that are there, the unchanged ones too.\n",
			}[rule]))
	}
	status, _ := call(
		t, "PUT", s.url+"/api/datasets/"+s.dataset, strings.TrimPrefix(s.flags[1], "--token="),
		`{"description": "New"}`,
	)
	is.Equal(status, 200)
	is.True(strings.HasPrefix(
		diff(), "~ dataset "+s.dataset+" \"Orders\"\ndataset        0 created, 1 updated, 0 unchanged,",
	))

	var answer struct {
		Updated, Unchanged int
		Changes            []struct{ Action, Type, ID, Name string }
	}
	is.NoErr(json.Unmarshal([]byte(diff("--json")), &answer))
	is.Equal(answer.Updated, 1)
	is.Equal(answer.Unchanged, 1)
	is.Equal(answer.Changes, []struct{ Action, Type, ID, Name string }{
		{"updated", "dataset", s.dataset, "Orders"}, {"unchanged", "report", s.report, "Sales"},
	})
}

// TestBundleExportFile: an export does not change other files, whatever their names are, and prints
// valid JSON.
func TestBundleExportFile(t *testing.T) {
	is, s, dir := is.New(t), ship(t), t.TempDir()
	file, mine := filepath.Join(dir, "s\x01\"\u2028.tgz"), filepath.Join(dir, "mine")
	is.NoErr(os.WriteFile(mine, []byte("mine"), 0o600))
	is.NoErr(os.WriteFile(file, []byte("old"), 0o600))
	is.NoErr(os.Symlink(mine, file+".part"))
	code, _, _ := cli(t, "", s.bundle("export", file, "--bundle=nope")...)
	is.Equal(code, 1)
	old, err := os.ReadFile(file)
	is.NoErr(err)
	is.Equal(string(old), "old")

	var answer struct {
		File  string
		Bytes int64
	}
	is.NoErr(json.Unmarshal([]byte(done(t, "", s.bundle("export", file, "--bundle=sales", "--json")...)), &answer))
	is.Equal(answer.File, file)
	info, err := os.Stat(file)
	is.NoErr(err)
	is.Equal(answer.Bytes, info.Size())
	text, err := os.ReadFile(file + ".part") // the link was followed
	is.NoErr(err)
	is.Equal(string(text), "mine")

	for _, folder := range []string{dir, filepath.Dir(dir)} {
		left, err := filepath.Glob(filepath.Join(folder, ".bundle-*"))
		is.NoErr(err)
		is.Equal(len(left), 0)
	}
}

// TestBundleDiffStops: an archive that cannot be imported ends a diff with an error.
func TestBundleDiffStops(t *testing.T) {
	is, s := is.New(t), ship(t)
	file, token := filepath.Join(t.TempDir(), "sales.tgz"), strings.TrimPrefix(s.flags[1], "--token=")
	status, _ := call(t, "PUT", s.url+"/api/reports/"+s.report, token, `{"slug": "sales"}`)
	is.Equal(status, 200)
	done(t, "", s.bundle("export", file, "--bundle=sales")...)
	s.drop(t)
	status, _ = call(t, "POST", s.url+"/api/reports", token, `{"name": "Other", "slug": "sales"}`)
	is.Equal(status, 201)
	for _, command := range []string{"diff", "import"} {
		code, stdout, stderr := cli(t, "", s.bundle(command, file)...)
		is.Equal(code, 1)
		is.Equal(stdout, "")
		is.True(strings.Contains(stderr, "409 Conflict: "))
		is.Equal(strings.Contains(stderr, "A diff stops at the first row that cannot be imported"), command == "diff")
	}
	is.True(strings.Contains(
		strings.Join(strings.Fields(done(t, "", "bundle", "--help")), " "),
		"stops at the first row that cannot be imported",
	))
	is.True(strings.Contains(
		strings.Join(strings.Fields(done(t, "", "bundle", "diff", "--help")), " "),
		"stops at the first row that cannot be imported",
	))
}

// TestClientHelp: the help of a client command lists its flags, and none of the server's.
func TestClientHelp(t *testing.T) {
	for _, args := range []string{
		"bundle", "bundle export", "bundle import", "bundle diff", "app", "app push", "app pull", "version",
	} {
		is := is.New(t)
		text := done(t, "", append(strings.Fields(args), "--help")...)
		is.Equal(strings.Contains(text, "--token"), args != "version")
		for _, flag := range []string{"--listen", "--secret-key", "--database", "--data", "--max-body", "--log-level"} {
			is.True(!strings.Contains(text, flag))
		}
		is.True(strings.Contains(text, "--help"))
	}
	is.New(t).True(strings.Contains(done(t, "", "migrate", "--help"), "--database"))
}

func TestBundleFailures(t *testing.T) {
	s := ship(t)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.tgz")
	is.New(t).NoErr(os.WriteFile(bad, []byte("no archive"), 0o600))
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such bundle": {
			s.bundle("export", filepath.Join(dir, "x.tgz"), "--bundle=nope"), 1,
			"404 Not Found: Bundle not found.",
		},
		"no such file": {s.bundle("import", filepath.Join(dir, "nope.tgz")), 2, "cannot read"},
		"a folder":     {s.bundle("import", dir), 2, "cannot read " + dir + ": it is a folder"},
		"to a folder":  {s.bundle("export", dir, "--bundle=sales"), 2, "cannot write " + dir + ": it is a folder"},
		"to a device":  {s.bundle("export", os.DevNull, "--bundle=sales"), 2, "it is no plain file; - is the output"},
		"a device":     {s.bundle("import", os.DevNull), 1, "The file is not an archive: it is not gzip."},
		"no archive":   {s.bundle("diff", bad), 1, "400 Bad Request"},
		"no token":     {[]string{"bundle", "diff", bad, "--server=" + s.url}, 2, "TENANTCONTENT_TOKEN"},
		"wrong token": {
			[]string{"bundle", "diff", bad, "--server=" + s.url, "--token=tcs.default.x"}, 1,
			"401 Unauthorized",
		},
		"no server": {
			[]string{"bundle", "diff", bad, "--server=http://127.0.0.1:1", "--token=x"}, 1,
			"cannot reach http://127.0.0.1:1",
		},
		"no scheme": {
			[]string{"bundle", "diff", bad, "--server=127.0.0.1:8080", "--token=x"}, 2,
			`"127.0.0.1:8080" must be http:// or https:// and a host`,
		},
		"other scheme": {
			[]string{"bundle", "diff", bad, "--server=localhost:8080", "--token=x"}, 2,
			`"localhost:8080" must be http:// or https:// and a host`,
		},
		"no host": {
			[]string{"bundle", "diff", bad, "--server=http:/x", "--token=x"}, 2,
			"must be http:// or https:// and a host",
		},
		"unknown rule": {s.bundle("import", bad, "--update-rule=merge"), 2, "update-rule"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			code, _, stderr := cli(t, "", c.args...)
			is.Equal(code, c.code)
			is.True(strings.Contains(stderr, c.says))
		})
	}
	left, err := filepath.Glob(filepath.Join(dir, "x.tgz*"))
	is.New(t).NoErr(err)
	is.New(t).Equal(len(left), 0) // a failed export leaves no file
}
