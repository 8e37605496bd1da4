package database

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/postgres"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

// Workspaces keeps the SQL databases of apps.
type Workspaces = workspaces.Driver

// OpenWorkspaces opens what keeps the SQL databases of apps, for Config.Workspaces. quota is the
// most bytes of a workspace; 0: 256 MiB. text is
//
//   - a folder, in which each app has a SQLite file;
//   - postgres://…, a database of its own, in which each app has a schema and a role: see
//     internal/workspaces/postgres;
//   - empty: the folder beside the file of the program's own database, with .workspaces behind its
//     name. main is the URL of that database; for a PostgreSQL there is no such folder, and the
//     driver is nil.
//
// It does not connect yet. The caller closes the driver. Errors: errs.Invalid; no error shows a
// password.
func OpenWorkspaces(text, main string, quota int64) (Workspaces, error) {
	if text == "" {
		if text = workspacesBeside(main); text == "" {
			return nil, nil
		}
	}
	switch scheme, _, ok := strings.Cut(text, "://"); {
	case !ok:
		d, err := sqlite.New(sqlite.Options{Dir: text, Quota: quota})
		if err != nil {
			return nil, err
		}
		return d, nil
	case scheme != "postgres" && scheme != "postgresql":
		return nil, errs.New(errs.Invalid, "workspaces are in a folder or a PostgreSQL: name a folder or postgres://…")
	}
	if samePlace(text, main) {
		return nil, errs.New(
			errs.Invalid,
			"the database of the service itself cannot have workspaces: name another one, best in another cluster",
		)
	}
	d, err := postgres.New(postgres.Options{URL: text, Quota: quota})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// workspacesBeside returns the folder of workspaces beside the file of a database, "" for a
// PostgreSQL.
func workspacesBeside(main string) string {
	path, embedded := strings.CutPrefix(main, "sqlite:")
	if !embedded || path == "" {
		return ""
	}
	return filepath.Clean(path) + ".workspaces"
}

// samePlace reports whether two URLs name one database of a server. The driver notices what they do
// not show.
func samePlace(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil {
		return false
	}
	v, err := url.Parse(b)
	if err != nil {
		return false
	}
	port := func(u *url.URL) string { return cmp.Or(u.Port(), "5432") }
	return u.Hostname() != "" && u.Hostname() == v.Hostname() && port(u) == port(v) &&
		strings.Trim(u.Path, "/") == strings.Trim(v.Path, "/")
}
