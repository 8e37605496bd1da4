package tenantcontent

import "github.com/tenantcontent/tenantcontent/entity"

// Registry returns the registry that the services share.
func (app *App) Registry() *entity.Registry { return app.registry }
