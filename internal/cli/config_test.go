package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// secret is used for passwords and keys; output must not contain it.
const secret = "s3cr3t-XyZZy-w0rd"

// fails runs a command that must fail with one line on stderr that contains says and no secret.
func fails(t *testing.T, code int, says, stdin string, args ...string) {
	t.Helper()
	is := is.New(t)
	got, stdout, stderr := cli(t, stdin, args...)
	t.Log(stderr)
	is.Equal(got, code)
	is.Equal(stdout, "")
	is.True(strings.HasPrefix(stderr, "tenantcontent: "))
	is.Equal(strings.Count(stderr, "\n"), 1) // one line
	is.True(strings.HasSuffix(stderr, "\n"))
	is.True(strings.Contains(stderr, says))
	is.True(!strings.Contains(stderr, secret))
	is.True(!strings.Contains(stderr, key))
}

func TestBadConfiguration(t *testing.T) {
	data := "--data=" + filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "file")
	is.New(t).NoErr(os.WriteFile(file, []byte(strings.Repeat("no database ", 1000)), 0o600))
	for name, c := range map[string]struct {
		says string
		args []string
	}{
		"flag": {"unknown flag --nope", []string{"--nope"}},
		"flag of a command": {
			"unknown flag --admin-pasword: did you mean --admin-password?",
			[]string{"serve", "--admin-pasword=" + secret},
		},
		"command":          {"unknown command sreve: did you mean serve?", []string{"sreve"}},
		"no argument":      {`expected "<id>"`, []string{"tenant", "add"}},
		"log format":       {"--log-format", []string{"--log-format=xml"}},
		"log level":        {"--log-level", []string{"--log-level=loud"}},
		"other database":   {"sqlite: or postgres://", []string{"--database=mysql://u:" + secret + "@h/db"}},
		"no URL":           {"sqlite: or postgres://", []string{"--database=" + secret}},
		"no file":          {"must name a file", []string{"--database=sqlite:", data}},
		"in memory":        {"must name a file", []string{"--database=sqlite::memory:", data}},
		"folder as a file": {"cannot be opened", []string{"--database=sqlite:" + t.TempDir(), data}},
		"PostgreSQL, no key": {
			"TENANTCONTENT_SECRET_KEY", []string{"--database=postgres://u:" + secret + "@127.0.0.1/db"},
		},
		"PostgreSQL port": {
			"database URL", []string{"--database=postgres://u:" + secret + "@h:port/db", "--secret-key=" + key},
		},
		"PostgreSQL password": {
			"percent-encoded", []string{"--database=postgres://u:" + secret + "%@h/db", "--secret-key=" + key},
		},
		"PostgreSQL setting": {
			"pool_max_conns",
			[]string{"--database=postgres://u:" + secret + "@h/db?pool_max_conns=no", "--secret-key=" + key},
		},
		"key":                 {"Key 1", []string{"--secret-key=" + secret, data}},
		"second key":          {"Key 2", []string{"--secret-key=" + key + "," + secret, data}},
		"base URL":            {"base URL", []string{"--base-url=content.example.com", data}},
		"base URL with query": {"base URL", []string{"--base-url=https://content.example.com/sub?x", data}},
		"app origin":          {"must have {app}", []string{"--app-origin=https://apps.example.com", data}},
		"no archive":          {"--max-archive: \"0\" is no size", []string{"--max-archive=0", data}},
		"no members": {
			"--max-archive-members: \"-1\" is no whole number", []string{"--max-archive-members=-1", data},
		},
		"size":               {"such as 64MiB", []string{"--max-body=x", data}},
		"size below nothing": {"--max-upload: \"-1\" is no size", []string{"serve", "--max-upload=-1", data}},
		"lifetime":           {"--session-lifetime: \"12\" is no time", []string{"--session-lifetime=12", data}},
		"flag of a sibling":  {"unknown flag --max-body", []string{"migrate", "--max-body=1MiB", data}},
		"no folder": {
			"the folder " + file + "-none of the database",
			[]string{"--database=sqlite:" + file + "-none/x.db", data},
		},
		"command below":     {"unknown command ad: did you mean add?", []string{"user", "ad"}},
		"nonsense":          {"unknown command gibberish: `tenantcontent help` lists", []string{"gibberish"}},
		"flag like another": {"unknown flag --max-boddy: did you mean --max-body?", []string{"--max-boddy=1"}},
		"ratio":             {"--max-archive-ratio", []string{"--max-archive-ratio=tight", data}},
		"networks": {
			`--deny-networks: "nowhere" is not a network`, []string{"--deny-networks=10.0.0.0/8,nowhere", data},
		},
		"workspaces": {
			`--workspaces: workspaces are in a folder or a PostgreSQL`,
			[]string{"--workspaces=mysql://x", data},
		},
		"proxies": {
			`--trusted-proxies: "10.0.0.0/33" is not a network`,
			[]string{"--trusted-proxies=10.0.0.0/33", data},
		},
		"proxy in a zone": {
			`--trusted-proxies: "fe80::1%eth0" is not a network`,
			[]string{"--trusted-proxies=fe80::1%eth0", data},
		},
		"model without a URL": {"--ai-url is missing", []string{"--ai-key=" + secret, data}},
		"URL of a model": {
			"--ai-url: it must be the address of an API", []string{"--ai-url=localhost", "--ai-models=m", data},
		},
		"no model": {"--ai-models: ", []string{"--ai-url=http://localhost/v1", "--ai-key=" + secret, data}},
		"key of a model": {
			"--ai-key: it must have no spaces",
			[]string{"--ai-url=http://localhost/v1", "--ai-models=m", "--ai-key=" + secret + " ", data},
		},
		"address":            {"cannot listen", []string{"--listen=127.0.0.1:notaport", data}},
		"address of another": {"cannot listen", []string{"--listen=192.0.2.1:80", data}},
		"data folder":        {"data folder", []string{"--data=" + filepath.Join(file, "data")}},
		"admin password": {
			"password must have", []string{"serve", "--listen=127.0.0.1:0", "--admin-password=s3cr3t-", data},
		},
		"tenant id":           {"id must be", []string{"tenant", "add", "Not An Id", "--data=" + migrated(t)}},
		"no database in file": {"database", []string{"--database=sqlite:" + file, data}},
	} {
		t.Run(name, func(t *testing.T) { fails(t, 2, c.says, "", c.args...) })
	}
}

// parsed returns the library's configuration for flags and environment.
func parsed(t *testing.T, args ...string) tenantcontent.Config {
	t.Helper()
	is := is.New(t)
	var c commands
	parser, err := newParser(&c, io.Discard, io.Discard, func(int) {})
	is.NoErr(err)
	_, err = parser.Parse(append([]string{"serve"}, args...))
	is.NoErr(err)
	lib, err := c.Serve.library()
	is.NoErr(err)
	return lib
}

// TestArchiveLimits: without settings the limits are those of the library, and each setting is
// passed to it.
func TestArchiveLimits(t *testing.T) {
	is := is.New(t)
	lib := parsed(t)
	is.Equal(lib.ArchiveLimits, bundles.Limits{}.WithDefaults())
	is.Equal(lib.MaxArchive, int64(4<<30))
	is.Equal(lib.MaxImportTime, bundles.MaxTime)
	t.Setenv("TENANTCONTENT_MAX_ARCHIVE", "1")
	t.Setenv("TENANTCONTENT_MAX_ARCHIVE_MEMBERS", "2")
	t.Setenv("TENANTCONTENT_MAX_ARCHIVE_ROW", "4")
	lib = parsed(t, "--max-archive-bytes=3", "--max-archive-ratio=5", "--max-import-time=5s")
	is.Equal(lib.MaxImportTime, 5*time.Second)
	is.Equal(lib.ArchiveLimits, bundles.Limits{Members: 2, Bytes: 3, Row: 4, Ratio: 5})
	is.Equal(lib.MaxArchive, int64(1))
}

// TestDenyNetworks: without a setting only the library's defaults are denied.
func TestDenyNetworks(t *testing.T) {
	is := is.New(t)
	for text, want := range map[string]string{
		"": "[]", "--deny-networks=none": "[]", "--deny-networks=10.0.0.0/8,::1/128": "[10.0.0.0/8 ::1/128]",
	} {
		lib := parsed(t, strings.Fields(text)...)
		is.Equal(fmt.Sprint(lib.DenyNetworks), want)
		is.True(lib.DenyNetworks != nil)
	}
}

// TestAllowNetworks: the old name of the setting is used together with the new one.
func TestAllowNetworks(t *testing.T) {
	is := is.New(t)
	for text, want := range map[string]string{
		"":                                 "[]",
		"--allow-networks=127.0.0.0/8,::1": "[127.0.0.0/8 ::1/128]", "--mcp-networks=10.1.2.0/24": "[10.1.2.0/24]",
		"--allow-networks=127.0.0.1 --mcp-networks=10.1.2.0/24": "[127.0.0.1/32 10.1.2.0/24]",
	} {
		is.Equal(fmt.Sprint(parsed(t, strings.Fields(text)...).AllowNetworks), want)
	}
}

// TestTrustedProxies: without a setting no proxy is trusted; a single address is a network, too.
func TestTrustedProxies(t *testing.T) {
	is := is.New(t)
	for text, want := range map[string]string{
		"": "[]", "--trusted-proxies=10.0.0.0/8,192.0.2.1,::1": "[10.0.0.0/8 192.0.2.1/32 ::1/128]",
	} {
		is.Equal(fmt.Sprint(parsed(t, strings.Fields(text)...).TrustedProxies), want)
	}
}

func TestFailuresThatAreNoConfiguration(t *testing.T) {
	data := "--data=" + migrated(t)
	done(t, "", "tenant", "add", "acme", "--admin-password="+password, data)
	fails(t, 1, "exists already", "", "tenant", "add", "acme", "--admin-password="+secret, data)
	fails(t, 1, "exists already", secret, "user", "add", "admin", "--tenant=acme", data)
	fails(t, 1, "not found", secret, "user", "add", "jo", "--tenant=nowhere", data)
	fails(t, 1, "not found", secret, "user", "passwd", "jo", "--tenant=acme", data)
	fails(t, 2, "no password", "", "user", "add", "jo", "--tenant=acme", data)
	fails(t, 2, "password must have", "s3cr3t\n", "user", "add", "jo", "--tenant=acme", data)
	fails(t, 1, "127.0.0.1:1", "", "migrate", "--database=postgres://u:"+secret+"@127.0.0.1:1/db", "--secret-key="+key)
}

func TestPostgresThatRefuses(t *testing.T) {
	url := dbtest.PostgresURL(t)
	wrong := strings.Replace(url, "tester@", "nobody-here:"+secret+"@", 1)
	is.New(t).True(wrong != url)
	fails(t, 1, "nobody-here", "", "migrate", "--database="+wrong, "--secret-key="+key)
}

func TestWrongKeyForTheDatabase(t *testing.T) {
	is, data := is.New(t), migrated(t)
	done(t, "", "tenant", "add", "acme", "--admin-password="+password, "--data="+data)
	fails(
		t, 2, "the secret key does not fit this database", "", "serve", "--listen=127.0.0.1:0", "--data="+data,
		"--secret-key="+key,
	)
	is.NoErr(os.Chmod(filepath.Join(data, "secret.key"), 0o644))
	fails(t, 2, "chmod 600", "", "serve", "--listen=127.0.0.1:0", "--data="+data)
	is.NoErr(os.Remove(filepath.Join(data, "secret.key")))
	fails(
		t, 2, "secret.key is missing, and the database has tenants", "", "serve", "--listen=127.0.0.1:0",
		"--data="+data,
	)
}

func TestDatabaseOfANewerVersion(t *testing.T) {
	is, data := is.New(t), filepath.Join(t.TempDir(), "data")
	done(t, "", "migrate", "--data="+data)
	db, err := engines.Open("sqlite:" + filepath.Join(data, "tenantcontent.db"))
	is.NoErr(err)
	_, err = db.ExecContext(t.Context(), "INSERT INTO tc_migrations (name, migrated_at) VALUES ('9999_later', '')")
	is.NoErr(err)
	is.NoErr(db.Close())
	fails(t, 2, "run a newer version", "", "serve", "--listen=127.0.0.1:0", "--data="+data)
}

func TestTakenAddressLosesNoPassword(t *testing.T) {
	is, data := is.New(t), "--data="+filepath.Join(t.TempDir(), "data")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	defer func() { _ = l.Close() }()
	fails(t, 2, "cannot listen", "", "serve", "--listen="+l.Addr().String(), data)
	s := serving(t, data)
	is.True(strings.Contains(s.stdout.String(), "First start")) // the failed start did not use it up
}

func TestDataIsForItsOwnerAlone(t *testing.T) {
	is, data := is.New(t), filepath.Join(t.TempDir(), "a", "data")
	s := serving(t, "--data="+data)
	s.login(t, "", "admin", passwordIn(t, s.stdout.String()))
	files := 0
	is.NoErr(filepath.WalkDir(filepath.Dir(data), func(path string, d fs.DirEntry, err error) error {
		is.NoErr(err)
		info, err := d.Info()
		is.NoErr(err)
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return nil
	}))
	is.True(files >= 2) // the key and the database with its files
}

// migrated returns a data folder with a migrated database and its key.
func migrated(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	done(t, "", "migrate", "--data="+data)
	return data
}

// TestOnlyServeAndMigrateMakeADatabase: other commands name the missing file and create nothing.
func TestOnlyServeAndMigrateMakeADatabase(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{
		"tenant add acme", "user add jo --password=long-enough", "user passwd jo --password=long-enough",
		"rekey",
	} {
		for flag, says := range map[string]string{
			"--data=" + dir + "/data":                "there is no database at " + dir + "/data/tenantcontent.db",
			"--database=sqlite:" + dir + "/x.db":     "there is no database at " + dir + "/x.db",
			"--database=sqlite:" + dir + "/sub/x.db": "the folder " + dir + "/sub of the database",
		} {
			fails(t, 2, says, "", append(strings.Fields(args), flag, "--secret-key="+key)...)
		}
	}
	left, err := os.ReadDir(dir)
	is.New(t).NoErr(err)
	is.New(t).Equal(len(left), 0)

	data := migrated(t)
	is.New(t).NoErr(os.Remove(filepath.Join(data, "secret.key")))
	fails(t, 2, "there is no secret key at "+data, "", "tenant", "add", "acme", "--data="+data)
}

// TestNeverMigrated: the error names the command to run, on both databases.
func TestNeverMigrated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty.db")
	is.New(t).NoErr(os.WriteFile(file, nil, 0o600))
	fails(
		t, 1, "The database has no tables yet. Run: tenantcontent migrate", "", "tenant", "add", "acme",
		"--database=sqlite:"+file, "--secret-key="+key,
	)
	fails(t, 1, "The database has no tables yet. Run: tenantcontent migrate", "", append([]string{"rekey"},
		onPostgres(t)...)...)
}

// TestSizes: sizes are parsed and printed in the same form.
func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1":       1,
		"1B":      1,
		"64MiB":   64 << 20,
		"1536KiB": 1536 << 10,
		"4GiB":    4 << 30,
		"8TiB":    8 << 40,
	} {
		var s size
		is.New(t).NoErr(s.UnmarshalText([]byte(text)))
		is.New(t).Equal(int64(s), want)
		is.New(t).Equal(strings.TrimSuffix(s.String(), "B"), strings.TrimSuffix(text, "B"))
	}
	for _, text := range []string{"", "x", "-1", "0", "1.5MiB", "64M", "MiB", "1 MiB", "9999999TiB", "64MiBB"} {
		var s size
		is.New(t).True(s.UnmarshalText([]byte(text)) != nil)
	}
}

// TestHelpListsWhatACommandUses: the help lists exactly the flags of a command, with defaults.
func TestHelpListsWhatACommandUses(t *testing.T) {
	for command, c := range map[string]struct{ has, hasNot string }{
		"serve": {
			"--listen --max-body 1MiB --max-archive-members 200000 --database --log-level --admin-password",
			"--token --name --version",
		},
		"migrate":       {"--database --data ./data --row-level-security", "--listen --max-body --log-level"},
		"tenant add":    {"--database --name --admin-password", "--listen --max-body --log-level"},
		"user passwd":   {"--database --tenant --password", "--listen --admin-password"},
		"rekey":         {"--database --secret-key", "--listen --admin-password"},
		"bundle import": {"--server --token --update-rule skip --dry-run", "--database --secret-key"},
		"version":       {"--help", "--database --token"},
	} {
		text := done(t, "", append([]string{"help"}, strings.Fields(command)...)...)
		is.New(t).Equal(text, done(t, "", append(strings.Fields(command), "--help")...))
		for _, word := range strings.Fields(c.has) {
			is.New(t).True(strings.Contains(text, word))
		}
		for _, word := range strings.Fields(c.hasNot) {
			is.New(t).True(!strings.Contains(text, word))
		}
	}
	is.New(t).Equal(done(t, "", "help"), done(t, "", "--help"))
	is.New(t).Equal(done(t, "", "version"), done(t, "", "--version"))
}

func TestHelpShowsNoSecret(t *testing.T) {
	is := is.New(t)
	for _, name := range []string{"SECRET_KEY", "ADMIN_PASSWORD", "PASSWORD", "DATABASE"} {
		t.Setenv("TENANTCONTENT_"+name, secret)
	}
	for _, args := range [][]string{{"serve", "--help"}, {"user", "add", "--help"}, {"tenant", "add", "--help"}} {
		text := done(t, "", args...)
		is.True(strings.Contains(text, "TENANTCONTENT_SECRET_KEY"))
		is.True(!strings.Contains(text, secret))
	}
}

// TestAppOriginIsLogged: the origin of apps is logged when the server starts, with a warning if
// nothing serves it on this machine.
func TestAppOriginIsLogged(t *testing.T) {
	is := is.New(t)
	const warning = "another scheme or port"
	for origin, warned := range map[string]bool{
		"": false, "http://{app}.localhost:8080": false,
		"http://{app}.localhost:9090":       true,
		"https://{app}.apps.localhost:8080": true, "https://{app}.apps.example.com": false,
	} {
		s := serving(t, "--data="+t.TempDir(), "--base-url=http://localhost:8080", "--app-origin="+origin)
		is.Equal(s.stop(), 0)
		is.Equal(strings.Contains(s.stderr.String(), warning), warned)
		is.Equal(strings.Contains(s.stderr.String(), "apps="+origin), origin != "")
	}
}

// TestModels: without a URL the provider is nil. With a URL, the names of models are those of the
// setting.
func TestModels(t *testing.T) {
	is := is.New(t)
	provider := func(args ...string) ai.Provider {
		var c commands
		parser, err := newParser(&c, io.Discard, io.Discard, func(int) {})
		is.NoErr(err)
		_, err = parser.Parse(append([]string{"serve"}, args...))
		is.NoErr(err)
		p, err := c.Serve.models(tenantcontent.Config{})
		is.NoErr(err)
		return p
	}
	is.Equal(provider(), nil)
	t.Setenv("TENANTCONTENT_AI_URL", "http://localhost:11434/v1")
	t.Setenv("TENANTCONTENT_AI_KEY", secret)
	t.Setenv("TENANTCONTENT_AI_MODELS", "fast=llama3.2:3b, smart")
	p := provider()
	is.Equal(p.(ai.Lister).Models(), []string{"fast", "smart"})
	_, images := p.(ai.Imager)
	is.True(!images)
	_, images = provider("--ai-image-model=flux").(ai.Imager)
	is.True(images)
}

// TestSkills: assistants have the tools of MCP servers, unless the operator disables them.
func TestSkills(t *testing.T) {
	is := is.New(t)
	skills := func() []conversation.Skill {
		var c commands
		parser, err := newParser(&c, io.Discard, io.Discard, func(int) {})
		is.NoErr(err)
		_, err = parser.Parse([]string{"serve"})
		is.NoErr(err)
		lib := parsed(t)
		lib.DenyNetworks = []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}
		return c.Serve.skills(lib)
	}
	accepts := func(url string) bool {
		return skills()[0].Accept(json.RawMessage(`{"tools": ["a"], "url": "`+url+`"}`)) == nil
	}
	is.Equal(skills()[0].Type, "mcp")
	is.True(accepts("https://mcp.example.com"))
	is.True(!accepts("http://10.1.2.4"))
	t.Setenv("TENANTCONTENT_MCP_NETWORKS", "10.1.2.0/24")
	is.True(accepts("http://10.1.2.4"))
	is.True(!accepts("http://10.1.2.3")) // denied for all
	is.True(!accepts("http://10.1.3.4"))
	t.Setenv("TENANTCONTENT_MCP", "off")
	is.Equal(len(skills()), 0)
}
