package sqlite

import (
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/sqlite"
)

// Workspaces keeps the SQL databases of apps.
type Workspaces = workspaces.Driver

// OpenWorkspaces opens what keeps the SQL databases of apps, for Config.Workspaces: each app has a
// SQLite file in a folder, which is made when it is needed. quota is the most bytes of a workspace;
// 0: 256 MiB. The caller closes the driver. Errors: errs.Invalid.
func OpenWorkspaces(folder string, quota int64) (Workspaces, error) {
	d, err := sqlite.New(sqlite.Options{Dir: folder, Quota: quota})
	if err != nil {
		return nil, err
	}
	return d, nil
}
