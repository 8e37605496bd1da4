package bunstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// userLogin is the part of a user's login that is in tc_users.
type userLogin struct {
	tenant string
	principals.Login
}

// loginTable has the columns of a user's login. A login reads all of them and writes those without
// Once.
var loginTable = bunx.NewTable("tc_users", "u", []bunx.Column[userLogin]{
	{Name: "tenant_id", Key: true, Value: func(l *userLogin) any { return l.tenant }},
	{Name: "username", Key: true, Field: func(l *userLogin) any { return &l.Username }},
	{Name: "domain", Once: true, Field: func(l *userLogin) any { return &l.Domain }},
	{Name: "enabled", Once: true, Field: func(l *userLogin) any { return &l.Enabled }},
	{Name: "directory_locked", Once: true, Field: func(l *userLogin) any { return &l.DirectoryLocked }},
	{Name: "password_hash", Field: func(l *userLogin) any { return bunx.TextOrNull(&l.Hash) }},
	{Name: "login_attempts", Field: func(l *userLogin) any { return &l.Attempts }},
	{Name: "locked_at", Field: func(l *userLogin) any { return bunx.TimeOf(&l.LockedAt) }},
	{Name: "password_set_at", Field: func(l *userLogin) any { return bunx.TimeOf(&l.SetAt) }},
	{Name: "password_expires_at", Field: func(l *userLogin) any { return bunx.TimeOf(&l.ExpiresAt) }},
	{Name: "recent_failures", Field: func(l *userLogin) any { return timesField{&l.Recent} }},
})

// networkLogin is a row of tc_login_networks.
type networkLogin struct {
	tenant, username, network string
	principals.NetworkLogin
}

// networkTable has the columns of a user's logins from a network. Readers pass the key.
var networkTable = bunx.NewTable("tc_login_networks", "n", []bunx.Column[networkLogin]{
	{Name: "tenant_id", Key: true, Value: func(n *networkLogin) any { return n.tenant }},
	{Name: "username", Key: true, Value: func(n *networkLogin) any { return n.username }},
	{Name: "network", Key: true, Value: func(n *networkLogin) any { return n.network }},
	{Name: "attempts", Field: func(n *networkLogin) any { return numberField{&n.Attempts} }},
	{Name: "failed_at", Field: func(n *networkLogin) any { return bunx.TimeOf(&n.FailedAt) }},
	{Name: "locked_at", Field: func(n *networkLogin) any { return bunx.TimeOf(&n.LockedAt) }},
	{Name: "logged_in_at", Field: func(n *networkLogin) any { return bunx.TimeOf(&n.LoggedInAt) }},
	{Name: "expires_at", Value: func(n *networkLogin) any { return bunx.At(n.ExpiresAt()) }},
})

// selectLogin reads a login, and NULLs for a network without a row.
var selectLogin = `SELECT ` + loginTable.Qualified + `, ` + networkTable.Qualified + ` FROM tc_users u
	LEFT JOIN tc_login_networks n ON n.tenant_id = u.tenant_id AND n.username = u.username AND n.network = $3
	WHERE u.tenant_id = $1 AND u.folded = $2`

// Login implements principals.Store.
func (s *Store) Login(ctx context.Context, tenant, folded, network string) (l principals.Login, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = bunx.FindDeferred(s.db, tenant, attemptKey(folded), func(attempts []any) error {
		if l, err = login(ctx, c, tenant, folded, network, ""); err == nil {
			apply(&l, network, attempts)
		}
		return err
	})
	return l, err
}

// login reads a login. Unless lock is "", it locks the user's row before it reads the network's,
// because another edit may have written both since.
func login(ctx context.Context, c bunx.Conn, tenant, folded, network, lock string) (principals.Login, error) {
	if lock != "" {
		var name string
		if err := c.One(
			ctx, "User", `SELECT username FROM tc_users WHERE tenant_id = $1 AND folded = $2`+lock,
			[]any{tenant, folded}, &name,
		); err != nil {
			return principals.Login{}, err
		}
	}
	var l userLogin
	var n networkLogin
	err := c.One(ctx, "User", selectLogin, []any{tenant, folded, network}, append(loginTable.Dest(&l),
		networkTable.Dest(&n)...)...)
	if err != nil {
		return principals.Login{}, err
	}
	l.Network = n.NetworkLogin
	return l.Login, nil
}

// numberField is a number that is NULL for 0.
type numberField struct{ n *int }

// Scan implements sql.Scanner.
func (f numberField) Scan(src any) error {
	var n sql.NullInt64
	err := n.Scan(src)
	*f.n = int(n.Int64)
	return err
}

// Value implements driver.Valuer.
func (f numberField) Value() (driver.Value, error) { return int64(*f.n), nil }

// timesField is a list of times: microseconds since 1970, separated by commas. It is NULL for an
// empty list.
type timesField struct{ all *[]time.Time }

// Scan implements sql.Scanner.
func (f timesField) Scan(src any) error {
	var text sql.NullString
	if err := text.Scan(src); err != nil {
		return err
	}
	*f.all = nil
	for part := range strings.SplitSeq(text.String, ",") {
		if part == "" {
			continue
		}
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return err
		}
		*f.all = append(*f.all, time.UnixMicro(n).UTC())
	}
	return nil
}

// Value implements driver.Valuer.
func (f timesField) Value() (driver.Value, error) {
	if len(*f.all) == 0 {
		return nil, nil
	}
	parts := make([]string, len(*f.all))
	for i, at := range *f.all {
		parts[i] = strconv.FormatInt(at.UnixMicro(), 10)
	}
	return strings.Join(parts, ","), nil
}

// EditLogin implements principals.Store.
func (s *Store) EditLogin(
	ctx context.Context, tenant, folded, network string, edit func(*principals.Login) error,
) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return editLogin(ctx, c, tenant, folded, network, edit)
	})
}

func editLogin(
	ctx context.Context, c bunx.Conn, tenant, folded, network string, edit func(*principals.Login) error,
) error {
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
	l.Username = was.Username
	if !reflect.DeepEqual(ofUser(l), ofUser(was)) {
		if _, err := loginTable.Update(ctx, c, &userLogin{tenant, l}); err != nil {
			return bunx.Err(err, "User")
		}
	}
	return editNetworks(ctx, c, tenant, network, was, l)
}

// Attempt implements principals.Store. The counted attempt may be deferred: see bunx.WriteSoon.
func (s *Store) Attempt(ctx context.Context, tenant, folded, network string, edit func(*principals.Login) error) error {
	return bunx.WriteSoon(ctx, s.db, tenant, bunx.Soon{
		Run: func(ctx context.Context, c bunx.Conn) error {
			s.notifier.AfterCommit(ctx, tenant)
			return editLogin(ctx, c, tenant, folded, network, edit)
		},
		Decide: func(ctx context.Context) (bunx.DeferredWrite, error) {
			l, err := s.Login(ctx, tenant, folded, network)
			if err == nil {
				err = edit(&l)
			}
			return bunx.DeferredWrite{
				Key:   attemptKey(folded),
				Value: attempt{network, l},
				Group: bunx.LoginsOf(l.Username),
			}, err
		},
	})
}

// attempt is a login attempt that is not stored yet, and the login after it.
type attempt struct {
	network string
	after   principals.Login
}

// attemptKey returns the key for the deferred attempts of a user.
func attemptKey(folded string) string { return "attempt " + folded }

// apply changes a login of a network to its state after attempts, oldest first.
func apply(l *principals.Login, network string, attempts []any) {
	for _, v := range attempts {
		a := v.(attempt)
		l.Attempts, l.LockedAt, l.Recent = a.after.Attempts, a.after.LockedAt, a.after.Recent
		if a.network == network {
			l.Network = a.after.Network
		}
	}
}

// ofUser returns the part of a login that is in the user's row.
func ofUser(l principals.Login) principals.Login {
	l.Network, l.NetworkLock, l.Unlock, l.Forget = principals.NetworkLogin{}, time.Time{}, false, false
	if len(l.Recent) == 0 {
		l.Recent = nil
	}
	return l
}

// editNetworks writes the changes of an edit to the user's networks.
func editNetworks(ctx context.Context, c bunx.Conn, tenant, network string, was, l principals.Login) error {
	var err error
	n := l.Network
	switch {
	case l.Forget:
		_, err = c.Exec(
			ctx, `DELETE FROM tc_login_networks WHERE tenant_id = $1 AND username = $2`, tenant, was.Username,
		)
	case l.Unlock:
		_, err = c.Exec(
			ctx,
			`DELETE FROM tc_login_networks WHERE tenant_id = $1 AND username = $2 AND logged_in_at IS NULL`,
			tenant, was.Username,
		)
		if err == nil {
			_, err = c.Exec(ctx, `UPDATE tc_login_networks SET attempts = 0, failed_at = NULL, locked_at = NULL
				WHERE tenant_id = $1 AND username = $2 AND failed_at IS NOT NULL`, tenant, was.Username)
		}
	case n != was.Network:
		_, err = networkTable.Insert(ctx, c, networkTable.OnConflict, networkLogin{tenant, was.Username, network, n})
		if err == nil && (was.Network == principals.NetworkLogin{} ||
			was.Network.LoggedInAt.IsZero() != n.LoggedInAt.IsZero()) {
			err = trimNetworks(ctx, c, tenant, was.Username)
		}
	}
	return bunx.Err(err, "Network")
}

// trimNetworks removes the oldest networks of a user beyond principals.MaxNetworks. It counts
// networks with a login and networks with only failures separately, so that failed attempts of
// others do not remove a login.
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
	n, err = bunx.DeleteSteps(
		ctx, s.db, tenant, "tc_login_networks", "username, network", `expires_at <= $2`, bunx.At(at),
	)
	s.notifier.AfterCommit(ctx, tenant)
	return n, err
}
