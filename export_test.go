package tenantcontent

import (
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/workspaces"
)

// Registry returns the registry that the services share.
func (app *App) Registry() *entity.Registry { return app.registry }

// Workspaces returns the SQL databases of apps.
func (app *App) Workspaces() *workspaces.Service { return app.workspaces }
