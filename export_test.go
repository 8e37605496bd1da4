package tenantcontent

import (
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// SetKeepAliveInterval sets how often an import is noted while it waits for its reader, until the
// test ends.
func SetKeepAliveInterval(t *testing.T, d time.Duration) {
	was := keepAliveInterval
	keepAliveInterval = d
	t.Cleanup(func() { keepAliveInterval = was })
}

// Registry returns the registry that the services share.
func (app *App) Registry() *entity.Registry { return app.registry }

// Workspaces returns the SQL databases of apps.
func (app *App) Workspaces() *workspaces.Service { return app.workspaces }

// OpenSecret opens a sealed value.
func (app *App) OpenSecret(tenant, table, column, row, sealed string) ([]byte, error) {
	return app.keys.Open(tenant, table, column, row, sealed)
}

// Seal seals a value.
func (app *App) Seal(tenant, table, column, row string, plain []byte) (string, error) {
	return app.keys.Seal(tenant, table, column, row, plain)
}

// Observed is observed.
var Observed = observed
