package bunstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Login implements principals.Store.
func (s *Store) Login(ctx context.Context, tenant, folded, network string) (principals.Login, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return login(ctx, c, tenant, folded, network, "")
}

// login reads a login and, unless lock is "", locks the user's row before it reads the network's: another edit may have
// written both meanwhile.
func login(ctx context.Context, c bunx.Conn, tenant, folded, network, lock string) (principals.Login, error) {
	if lock != "" {
		var name string
		if err := c.One(ctx, "User", `SELECT username FROM tc_users WHERE tenant_id = $1 AND folded = $2`+lock, []any{tenant, folded}, &name); err != nil {
			return principals.Login{}, err
		}
	}
	var l principals.Login
	var hash, recent *string
	var attempts *int
	var lockedAt, setAt, expiresAt, failed, shut, in bunx.Time
	err := c.One(ctx, "User", `SELECT u.username, u.domain, u.enabled, u.password_hash, u.login_attempts, u.locked_at, u.password_set_at,
		u.password_expires_at, u.recent_failures, n.attempts, n.failed_at, n.locked_at, n.logged_in_at
		FROM tc_users u LEFT JOIN tc_login_networks n ON n.tenant_id = u.tenant_id AND n.username = u.username AND n.network = $3
		WHERE u.tenant_id = $1 AND u.folded = $2`, []any{tenant, folded, network},
		&l.Username, &l.Domain, &l.Enabled, &hash, &l.Attempts, &lockedAt, &setAt, &expiresAt, &recent, &attempts, &failed, &shut, &in)
	if err != nil {
		return principals.Login{}, err
	}
	l.Hash, l.LockedAt, l.SetAt, l.ExpiresAt = or(hash), lockedAt.Time, setAt.Time, expiresAt.Time
	l.Network = principals.NetworkLogin{FailedAt: failed.Time, LockedAt: shut.Time, LoggedInAt: in.Time}
	if attempts != nil {
		l.Network.Attempts = *attempts
	}
	l.Recent, err = times(or(recent))
	return l, err
}

// times reads what timesText has written: microseconds since 1970, parted by commas.
func times(text string) ([]time.Time, error) {
	if text == "" {
		return nil, nil
	}
	var all []time.Time
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, time.UnixMicro(n).UTC())
	}
	return all, nil
}

func timesText(all []time.Time) string {
	parts := make([]string, len(all))
	for i, at := range all {
		parts[i] = strconv.FormatInt(at.UnixMicro(), 10)
	}
	return strings.Join(parts, ",")
}

// EditLogin implements principals.Store.
func (s *Store) EditLogin(ctx context.Context, tenant, folded, network string, edit func(*principals.Login) error) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		was, err := login(ctx, c, tenant, folded, network, c.ForUpdate())
		if err != nil {
			return err
		}
		if network == "" {
			var last bunx.Time
			err := c.One(ctx, "User", `SELECT max(locked_at) FROM tc_login_networks WHERE tenant_id = $1 AND username = $2`,
				[]any{tenant, was.Username}, &last)
			if err != nil {
				return err
			}
			was.NetworkLock = last.Time
		}
		l := was
		if err := edit(&l); err != nil {
			return err
		}
		if l.Hash != was.Hash || l.Attempts != was.Attempts || !l.LockedAt.Equal(was.LockedAt) || !l.SetAt.Equal(was.SetAt) ||
			!l.ExpiresAt.Equal(was.ExpiresAt) || !slices.Equal(l.Recent, was.Recent) {
			_, err = c.Exec(ctx, `UPDATE tc_users SET password_hash = $1, login_attempts = $2, locked_at = $3, password_set_at = $4,
				password_expires_at = $5, recent_failures = $6 WHERE tenant_id = $7 AND username = $8`,
				orNull(l.Hash), l.Attempts, bunx.At(l.LockedAt), bunx.At(l.SetAt), bunx.At(l.ExpiresAt), orNull(timesText(l.Recent)), tenant, was.Username)
			if err != nil {
				return bunx.Err(err, "User")
			}
		}
		return editNetworks(ctx, c, tenant, network, was, l)
	})
}

// editNetworks writes what an edit has changed in the user's networks.
func editNetworks(ctx context.Context, c bunx.Conn, tenant, network string, was, l principals.Login) error {
	var err error
	n := l.Network
	switch {
	case l.Forget:
		_, err = c.Exec(ctx, `DELETE FROM tc_login_networks WHERE tenant_id = $1 AND username = $2`, tenant, was.Username)
	case l.Unlock:
		_, err = c.Exec(ctx, `DELETE FROM tc_login_networks WHERE tenant_id = $1 AND username = $2 AND logged_in_at IS NULL`, tenant, was.Username)
		if err == nil {
			_, err = c.Exec(ctx, `UPDATE tc_login_networks SET attempts = 0, failed_at = NULL, locked_at = NULL
				WHERE tenant_id = $1 AND username = $2 AND failed_at IS NOT NULL`, tenant, was.Username)
		}
	case n != was.Network:
		_, err = c.Exec(ctx, `INSERT INTO tc_login_networks (tenant_id, username, network, attempts, failed_at, locked_at, logged_in_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (tenant_id, username, network) DO UPDATE SET attempts = excluded.attempts, failed_at = excluded.failed_at,
			locked_at = excluded.locked_at, logged_in_at = excluded.logged_in_at, expires_at = excluded.expires_at`,
			tenant, was.Username, network, n.Attempts, bunx.At(n.FailedAt), bunx.At(n.LockedAt), bunx.At(n.LoggedInAt), bunx.At(n.ExpiresAt()))
		if err == nil && (was.Network == principals.NetworkLogin{} || was.Network.LoggedInAt.IsZero() != n.LoggedInAt.IsZero()) {
			err = trimNetworks(ctx, c, tenant, was.Username)
		}
	}
	return bunx.Err(err, "Network")
}

// trimNetworks removes the oldest networks of a user beyond principals.MaxNetworks: of those with a login, and of those with
// failures alone, so that a stranger's failures push no login out.
func trimNetworks(ctx context.Context, c bunx.Conn, tenant, username string) error {
	for _, statement := range []string{
		`DELETE FROM tc_login_networks WHERE tenant_id = $1 AND username = $2 AND logged_in_at IS NULL AND network NOT IN (
			SELECT network FROM tc_login_networks WHERE tenant_id = $1 AND username = $2 AND logged_in_at IS NULL
			ORDER BY failed_at DESC, network LIMIT $3)`,
		`DELETE FROM tc_login_networks WHERE tenant_id = $1 AND username = $2 AND logged_in_at IS NOT NULL AND network NOT IN (
			SELECT network FROM tc_login_networks WHERE tenant_id = $1 AND username = $2 AND logged_in_at IS NOT NULL
			ORDER BY logged_in_at DESC, network LIMIT $3)`,
	} {
		if _, err := c.Exec(ctx, statement, tenant, username, principals.MaxNetworks); err != nil {
			return err
		}
	}
	return nil
}

// SweepNetworks implements principals.Store.
func (s *Store) SweepNetworks(ctx context.Context, tenant string, at time.Time) (n int, err error) {
	err = s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err = c.Exec(ctx, `DELETE FROM tc_login_networks WHERE tenant_id = $1 AND expires_at <= $2`, tenant, bunx.At(at))
		return bunx.Err(err, "Network")
	})
	return n, err
}
