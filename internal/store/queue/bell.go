package bunstore

import (
	"context"
	"errors"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// channel is the channel of PostgreSQL's notifications.
const channel = "tenantcontent_queue"

// Ring implements queue.Bell.
func (s *Store) Ring(ctx context.Context) error {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	if !c.Postgres() {
		return nil
	}
	_, err := c.Exec(ctx, `SELECT pg_notify($1, '')`, channel)
	return bunx.Err(err, "")
}

// Listen implements queue.Bell. It returns errors.ErrUnsupported if the driver of the database,
// such as a host's, cannot listen.
func (s *Store) Listen(ctx context.Context, heard func()) error {
	d, ok := s.db.Driver().(interface {
		Listen(ctx context.Context, channel string, heard func()) error
	})
	if !ok {
		return errors.ErrUnsupported
	}
	return d.Listen(ctx, channel, heard)
}
