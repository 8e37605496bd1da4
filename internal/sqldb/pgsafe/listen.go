package pgsafe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
)

// Listen listens to a channel of notifications on a separate connection. It calls heard when it
// begins to listen and for each notification, whose contents it ignores. It returns nil when ctx
// ends, or an error when the connection is lost. Programs that do not import this package find it
// as a method of sql.DB.Driver.
func (d urlDriver) Listen(ctx context.Context, channel string, heard func()) (err error) {
	k := d.listener
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pgsafe: the server does not speak PostgreSQL's protocol: %v", p)
		}
		if ctx.Err() != nil {
			err = nil
		}
	}()
	db := bun.NewDB(sql.OpenDB(pgdriver.NewConnector(k.options(nil), k.listening())), pgdialect.New())
	defer func() { _ = db.Close() }()
	listener := pgdriver.NewListener(db)
	defer func() { _ = listener.Close() }()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	if err := listener.Listen(ctx, channel); err != nil {
		return err
	}
	heard()
	for timeout := listenBegin; ; timeout = min(10*timeout, listenTimeout) {
		_, _, err := listener.ReceiveTimeout(ctx, timeout)
		var network net.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			heard()
		case errors.As(err, &network) && network.Timeout():
			heard()
		default:
			return err
		}
	}
}

// How long a listener waits for a notification before it calls heard anyway. The first wait is
// short, because pgdriver does not wait until the server has begun to listen.
const (
	listenBegin   = 50 * time.Millisecond
	listenTimeout = time.Minute
)

// listening adapts the options to a connection that waits long for messages.
func (k *connector) listening() pgdriver.Option {
	return func(conf *pgdriver.Config) {
		conf.BufferSize = 8192
		conf.DialTimeout = k.target.connectTimeout
		conf.WriteTimeout = k.target.connectTimeout
		conf.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, k.target.connectTimeout)
			defer cancel()
			_, secured, err := k.open(ctx, k.target.hosts[k.last.Load()])
			return secured, err
		}
	}
}
