package workspaces

import (
	"context"
	"fmt"
	"io"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// RowsTable is the table of the rows of workspaces; the first column of its key behind the tenant
// is an app.
const RowsTable = sealedTable

// Engine returns the engine of the workspaces of this server, "" if it has none.
func (s *Service) Engine() string {
	if s.o.Driver == nil {
		return ""
	}
	return s.o.Driver.Engine()
}

// CheckReachable returns the errors of Reachable.
func (s *Service) CheckReachable(ctx context.Context, tenant string) error {
	_, err := s.Reachable(ctx, tenant)
	return err
}

// Reachable returns how many workspaces a tenant has. It returns errs.Conflict, with what to do, if
// they are of another engine, or in another place, than those of this server.
func (s *Service) Reachable(ctx context.Context, tenant string) (n int, err error) {
	engines, err := s.o.Store.Engines(ctx, tenant)
	if err != nil {
		return 0, err
	}
	for _, some := range engines {
		n += some
	}
	own := s.Engine()
	for engine, some := range engines {
		if engine != own {
			return n, errs.New(errs.Conflict,
				"%d SQL databases of apps of the tenant %s were made with %s, and workspaces here are %s: name "+
					"their place (TENANTCONTENT_WORKSPACES), or leave all of them behind (--without-workspaces)",
				some, tenant, engine, orNone(own))
		}
	}
	if n == 0 {
		return 0, nil
	}
	there, err := s.o.Driver.Has(ctx, tenant)
	if err == nil && !there {
		err = errs.New(
			errs.Conflict,
			"%d SQL databases of apps of the tenant %s are not among the workspaces here: name their place "+
				"(TENANTCONTENT_WORKSPACES), or leave all of them behind (--without-workspaces)",
			n, tenant,
		)
	}
	return n, err
}

// Movable is Reachable, and returns errs.Conflict also if they cannot be moved to another server by
// Export and Import.
func (s *Service) Movable(ctx context.Context, tenant string) (n int, err error) {
	n, err = s.Reachable(ctx, tenant)
	if err != nil {
		return n, err
	}
	if _, ok := s.o.Driver.(Mover); !ok && n > 0 {
		text := fmt.Sprintf(
			"The tenant %s has %d SQL databases of apps in %s, which do not travel in the file: leave them behind "+
				"(--without-workspaces)",
			tenant, n, s.Engine(),
		)
		if at := s.location(tenant); at != "" {
			text += ", and move " + at + " with the tools of " + s.Engine()
		}
		return n, errs.New(errs.Conflict, "%s", text)
	}
	return n, nil
}

func orNone(engine string) string {
	if engine == "" {
		return "not configured"
	}
	return engine
}

// Left returns a sentence about n workspaces of a tenant that were not moved, and what to do.
func (s *Service) Left(tenant string, n int) string {
	if at := s.location(tenant); at != "" {
		return fmt.Sprintf(
			"%d SQL databases of apps: move %s with the tools of %s, or publish the apps again, "+
				"which makes empty tables",
			n, at, s.Engine(),
		)
	}
	return fmt.Sprintf("%d SQL databases of apps: publish the apps again, which makes empty tables", n)
}

// location returns what the tools of the engine are to move, "" if there is nothing.
func (s *Service) location(tenant string) string {
	if l, ok := s.o.Driver.(Locator); ok {
		return l.Location(tenant)
	}
	return ""
}

// Export writes the workspace of an app or draft, as it is at one moment, and reports whether there
// is one. Movable has returned no error.
func (s *Service) Export(ctx context.Context, tenant, app string, to io.Writer) (there bool, err error) {
	m, ok := s.o.Driver.(Mover)
	if !ok {
		return false, errNone()
	}
	return m.Export(ctx, tenant, app, to)
}

// Import makes the workspace of an app or draft of a tenant that nobody uses yet, of what Export
// has written on a server with the same engine. Errors: errs.Invalid, errs.TooLarge,
// errs.Unavailable.
func (s *Service) Import(ctx context.Context, tenant, app string, from io.Reader) error {
	m, ok := s.o.Driver.(Mover)
	if !ok {
		return errNone()
	}
	id, ok := uuids.Parse(app)
	if !ok || id != app || tenant == "" {
		return errs.New(errs.Invalid, "the export is damaged")
	}
	return m.Import(ctx, tenant, app, from)
}
