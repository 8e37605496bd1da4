package postgres

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/postgres"
)

// Workspaces keeps the SQL databases of apps.
type Workspaces = workspaces.Driver

// OpenWorkspaces opens what keeps the SQL databases of apps, for Config.Workspaces: each app has a
// schema and a role in the database of a URL, which is there for nothing else. main is the URL of
// the program's own database, so that it is not the same. quota is the most bytes of a workspace;
// 0: 256 MiB. It does not connect yet. The caller closes the driver. Errors: errs.Invalid; no error
// shows a password.
func OpenWorkspaces(text, main string, quota int64) (Workspaces, error) {
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
