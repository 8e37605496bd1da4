package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestTenants lists, shows and deletes tenants with all their content, on both databases.
func TestTenants(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, s := is.New(t), serving(t, flags...)
		with := func(args ...string) []string { return append(args, flags...) }
		done(t, "", with("tenant", "add", "acme", "--name=Acme Inc.")...)
		token := s.login(t, "acme", "admin", password)
		status, body := call(t, "POST", s.url+"/api/reports", token, `{"name": "Sales", "slug": "sales"}`)
		is.Equal(status, 201)
		path := s.url + "/api/reports/" + field(t, body, "id") + "/comments"
		status, body = call(t, "POST", path, token, `{"message": "Is this right, @admin?"}`)
		is.Equal(status, 201)
		status, _ = call(
			t, "POST", s.url+"/api/comments/"+field(t, body, "id")+"/replies", token, `{"message": "It is."}`,
		)
		is.Equal(status, 201)

		said := done(t, "", with("tenant", "list")...)
		is.Equal(strings.Fields(said)[:3], []string{"ID", "NAME", "CREATED"})
		is.True(strings.Contains(said, "acme     Acme Inc.  20"))
		said = done(t, "", with("tenant", "show", "acme")...)
		is.True(strings.Contains(said, "name              Acme Inc.\n"))
		is.True(strings.Contains(said, "items of content  1\n"))
		is.True(strings.Contains(said, "comments          2\n"))
		said = done(t, "", with("domain", "list", "--tenant=acme")...)
		is.Equal(strings.Join(strings.Fields(strings.Split(said, "\n")[1]), " "), "local local Local - - -")
		status, _ = call(
			t, "POST", s.url+"/api/domains", token,
			`{"name": "Staff", "type": "LDAP", "config": {"url": "ldap://ldap.example.com", "baseDN": "dc=x", `+
				`"schedule": "0 3 1 1 *"}}`,
		)
		is.Equal(status, 200)
		said = done(t, "", with("domain", "list", "--tenant=acme")...)
		is.Equal(strings.Fields(strings.Split(said, "\n")[0])[6:], []string{"SCAN", "SCHEDULE"})
		staff := strings.Join(strings.Fields(strings.Split(said, "\n")[2]), " ")
		// with the next time
		is.True(strings.HasPrefix(staff, "staff LDAP Staff - 2") && strings.HasSuffix(staff, " 0 3 1 1 *"))

		const has = "1 user, 1 item of content, 2 comments, 2 domains"
		fails(t, 2, "deleting the tenant acme needs --yes (it has "+has+")", "acme\n", with(
			"tenant", "delete", "acme",
		)...)
		is.Equal(done(t, "", with("tenant", "delete", "acme", "--yes")...), "Deleted the tenant acme with "+has+".\n")
		for _, args := range []string{"tenant show acme", "tenant delete acme --yes", "domain list --tenant=acme"} {
			fails(t, 1, "Tenant acme not found", "", with(strings.Fields(args)...)...)
		}
		is.True(!strings.Contains(done(t, "", with("tenant", "list")...), "acme"))
		s.login(t, "default", "admin", password) // another tenant still exists
	})
}

// TestTenantDeleteLeavesNoWorkspaces: a command that cannot access the SQL databases of apps does
// not delete a tenant, unless a flag allows it.
func TestTenantDeleteLeavesNoWorkspaces(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, folder := is.New(t), filepath.Join(t.TempDir(), "workspaces")
		with := func(args ...string) []string { return append(args, flags...) }
		done(t, "", with("migrate")...)
		url, embedded := strings.CutPrefix(flags[0], "--data=")
		if url = strings.TrimPrefix(url, "--database="); embedded {
			url = "sqlite:" + filepath.Join(url, "tenantcontent.db")
		}
		db, err := engines.Open(url)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(db.Close()) })
		driver, err := engines.OpenWorkspaces(folder, "", 0)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(driver.Close()) })
		for _, tenant := range []string{"acme", "evil"} {
			done(t, "", with("tenant", "add", tenant)...)
			is.NoErr(bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(
					ctx,
					`INSERT INTO tc_workspaces (tenant_id, app_id, engine, password, created_at) `+
						`VALUES ($1, $2, 'sqlite', '', $3)`,
					tenant, movedApp, bunx.At(time.Now()),
				)
				return err
			}))
			c, err := driver.Connect(t.Context(), workspaces.Workspace{Tenant: tenant, App: movedApp})
			is.NoErr(err)
			is.NoErr(c.Close())
		}
		why, elsewhere := "are not among the workspaces here: name their place", filepath.Join(t.TempDir(), "elsewhere")
		fails(t, 1, why, "", with("tenant", "delete", "acme", "--yes", "--workspaces="+elsewhere)...)
		if !embedded {
			why = "were made with sqlite, and workspaces here are not configured: name their place"
		}
		fails(t, 1, why, "", with("tenant", "delete", "acme", "--yes")...)
		done(t, "", with("tenant", "show", "acme")...)
		done(t, "", with("tenant", "delete", "acme", "--yes", "--workspaces="+folder)...)
		is.Equal(len(matching(t, folder, "*")), 1)
		done(t, "", with("tenant", "delete", "evil", "--yes", "--without-workspaces")...)
		is.Equal(len(matching(t, folder, "*", "*.sqlite")), 1)
		fails(t, 1, "Tenant evil not found", "", with("tenant", "show", "evil")...)
	})
}

// TestTenantFile moves a tenant with a file to a database on the other engine, with another secret
// key.
func TestTenantFile(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	dbtest.Server(t)
	is, dir := is.New(t), t.TempDir()
	from, to := onSQLite(t), onPostgres(t)
	done(t, "", append([]string{"migrate"}, from...)...)
	done(t, "", append([]string{"migrate"}, to...)...)
	done(t, "", append([]string{"tenant", "add", "acme", "--name=Acme Inc."}, from...)...)
	file, words := filepath.Join(dir, "acme.tenant"), filepath.Join(dir, "passphrase")
	is.NoErr(os.WriteFile(words, []byte("some words that nobody knows\nand a note\n"), 0o600))

	fails(t, 2, "no passphrase: set TENANTCONTENT_PASSPHRASE", "",
		append([]string{"tenant", "export", "acme", file}, from...)...)
	fails(t, 1, "Tenant nobody not found", "",
		append([]string{"tenant", "export", "nobody", file, "--passphrase-file=" + words}, from...)...)
	is.True(!there(file))
	said := done(t, "", append([]string{"tenant", "export", "acme", file, "--passphrase-file=" + words}, from...)...)
	is.True(strings.HasPrefix(said, "Wrote the tenant acme with "))
	info, err := os.Stat(file)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o600))
	fails(t, 2, "exists already: name a new file", "",
		append([]string{"tenant", "export", "acme", file, "--passphrase-file=" + words}, from...)...)
	left, err := os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(left), 2) // no incomplete file

	comes := filepath.Join(dir, "comes") // hidden at first
	is.NoErr(os.Symlink(filepath.Join(dir, "nowhere"), comes))
	fails(t, 2, "exists already: name a new file", "",
		append([]string{"tenant", "export", "acme", comes, "--passphrase-file=" + words}, from...)...)
	fails(t, 2, "exists already: name a new file", "", append([]string{"backup", comes}, from...)...)
	left, err = os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(left), 3)
	is.NoErr(os.Remove(comes))

	t.Setenv("TENANTCONTENT_PASSPHRASE", "some words that are wrong")
	fails(t, 2, "the passphrase is not the one", "", append([]string{"tenant", "import", file}, to...)...)
	t.Setenv("TENANTCONTENT_PASSPHRASE", "some words that nobody knows")
	is.True(strings.HasPrefix(
		done(t, "", append([]string{"tenant", "import", file, "--no-quota"}, to...)...),
		"Added the tenant acme with ",
	))
	fails(t, 1, "exists already", "", append([]string{"tenant", "import", file}, to...)...)
	fails(t, 2, "is a folder: name the file that tenant export has written", "",
		append([]string{"tenant", "import", dir}, to...)...)
	serving(t, to...).login(t, "acme", "admin", password)
}

// TestCompletion loads each script into its shell if it is installed (bash always), and requests
// completions from bash.
func TestCompletion(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	program, err := built()
	is.NoErr(err)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := done(t, "", "completion", shell)
		file := filepath.Join(dir, shell)
		is.NoErr(os.WriteFile(file, []byte(script), 0o600))
		if path, err := exec.LookPath(shell); err == nil {
			text, err := exec.Command(path, "-n", file).CombinedOutput()
			is.Equal(string(text), "")
			is.NoErr(err)
		}
	}
	for line, want := range map[string]string{
		"s":                           "serve",
		"tenant ":                     "add list show quota license delete export import",
		"help ten":                    "tenant",
		"bundle import --up":          "--update-rule",
		"serve --log-level ":          "debug info warn error",
		"serve --log-level = w":       "warn",
		"--log-format json serve --l": "--listen --log-format --log-level",
		"completion z":                "zsh",
		"bundle import ":              "",
		"tenant add --name x a":       "",
	} {
		words := strings.Split(line, " ")
		const ask = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tenantcontent; echo ` +
			`"${COMPREPLY[*]}"`
		text, err := exec.Command("bash",
			append([]string{"-c", ask, "bash", filepath.Join(dir, "bash"), program}, words...)...).CombinedOutput()
		is.NoErr(err)
		is.Equal(strings.Join(strings.Fields(string(text)), " "), want)
	}
	fails(t, 2, "bash", "", "completion", "csh")
}

// TestTenantQuota: the command sets, shows and resets the quota of one tenant. An invalid value is
// an error naming the flag.
func TestTenantQuota(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is := is.New(t)
		with := func(args ...string) []string { return append(args, flags...) }
		done(t, "", with("migrate")...)
		for _, tenant := range []string{"acme", "evil"} {
			done(t, "", with("tenant", "add", tenant)...)
		}
		line := func(tenant, of string, args ...string) string {
			for line := range strings.Lines(
				done(t, "", with(append([]string{"tenant", "quota", tenant}, args...)...)...),
			) {
				if rest, ok := strings.CutPrefix(line, of+" "); ok {
					return strings.Join(strings.Fields(rest), " ")
				}
			}
			return ""
		}
		is.True(strings.HasSuffix(line("acme", "bytes"), " 10.0 GiB (the server's)"))
		is.True(strings.HasSuffix(line("acme", "bytes", "--size=50GiB", "--databases=2000"), " 50.0 GiB"))
		is.Equal(line("acme", "databases"), "0 2000")
		is.True(strings.HasSuffix(line("acme", "bytes"), " 50.0 GiB"))
		is.Equal(line("evil", "databases"), "0 1000 (the server's)") // another tenant's does not change
		is.Equal(line("acme", "databases", "--databases=default"), "0 1000 (the server's)")
		is.True(strings.HasSuffix(line("acme", "bytes"), " 50.0 GiB")) // the other one does not change
		fails(t, 2, "--size: ", "", with("tenant", "quota", "acme", "--size=much")...)
		fails(t, 2, "--databases: ", "", with("tenant", "quota", "acme", "--databases=-1")...)
		fails(t, 1, "Tenant nobody not found", "", with("tenant", "quota", "nobody", "--size=1GiB")...)
	})
}

// TestTenantLicense: the operator's command sets licenses, which a running server uses at once. A
// superuser of the tenant cannot set them, unless the server allows it.
func TestTenantLicense(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is := is.New(t)
		with := func(args ...string) []string { return append(args, flags...) }
		s := serving(t, flags...)
		done(t, "", with("tenant", "add", "acme")...)
		token := s.login(t, "acme", "admin", password)
		const full, license = `{"type": "app", "name": "Full"}`, `{"settings": {"licenses": ["apps"]}}`
		status, body := call(t, "POST", s.url+"/api/apps", token, full)
		is.Equal(status, 403)
		is.True(strings.Contains(body, "tenantcontent tenant license acme --add apps"))
		status, body = call(t, "PUT", s.url+"/api/tenant", token, license)
		is.Equal(status, 403)
		is.True(strings.Contains(body, "tenantcontent tenant license acme --add"))

		is.Equal(done(t, "", with("tenant", "license", "acme")...), "licenses  nothing\n")
		is.Equal(done(t, "", with("tenant", "license", "acme", "--add=apps,x", "--add=y")...), "licenses  apps, x, y\n")
		is.Equal(done(t, "", with("tenant", "license", "acme", "--remove=x", "--remove", "y")...), "licenses  apps\n")
		is.Equal(done(t, "", with("tenant", "license", "default")...), "licenses  apps\n") // those of the first start
		status, _ = call(t, "POST", s.url+"/api/apps", token, full)
		is.Equal(status, 201)
		status, _ = call(t, "PUT", s.url+"/api/tenant", token, license) // the same licenses
		is.Equal(status, 200)
		fails(t, 2, `does not have the license "app"`, "", with("tenant", "license", "acme", "--remove=app")...)
		fails(t, 1, "Tenant nobody not found", "", with("tenant", "license", "nobody", "--add=apps")...)
		is.Equal(done(t, "", with("tenant", "license", "acme", "--remove=apps")...), "licenses  nothing\n")
		status, _ = call(t, "POST", s.url+"/api/apps", token, full)
		is.Equal(status, 403)

		is.Equal(s.stop(), 0)
		t.Setenv("TENANTCONTENT_OPEN_LICENSES", "true")
		s = serving(t, flags...)
		token = s.login(t, "acme", "admin", password)
		status, _ = call(t, "PUT", s.url+"/api/tenant", token, license)
		is.Equal(status, 200)
		is.Equal(done(t, "", with("tenant", "license", "acme")...), "licenses  apps\n")
	})
}
