//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// AddStandby starts a standby of the cluster from a copy of its data. It shuts down the cluster
// during that time.
func (c *Cluster) AddStandby(ctx context.Context) (*Cluster, error) {
	dir, err := os.MkdirTemp(c.dir, "standby")
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	if c.cred != nil {
		if err := os.Chown(dir, int(c.cred.Uid), int(c.cred.Gid)); err != nil {
			return nil, fmt.Errorf("pgtest: %w", err)
		}
	}
	data := filepath.Join(dir, "data")
	if err := c.Save(ctx, data); err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("\nhot_standby = on\nprimary_conninfo = 'host=127.0.0.1 port=%d user=postgres'\n", c.port)
	auto, err := os.OpenFile(filepath.Join(data, "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	_, err = auto.WriteString(settings)
	if err = errors.Join(
		err, auto.Close(), os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o644),
	); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return StartCopy(ctx, data)
}
