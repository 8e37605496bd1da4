package bunstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/principals"
)

// batch is the number of rows that one statement writes.
const batch = 500

// directoryColumns are the columns that a directory sets.
var directoryColumns = []string{
	"source", "source_id", "display_name", "family_name", "given_name", "middle_name",
	"email", "email_typed", "timezone", "enabled", "directory_disabled", "directory_locked",
}

// directoryTable is userTable for reading principals.DirectoryUsers.
var directoryTable = userTable.Only(append([]string{"username", "superuser"}, directoryColumns...)...)

// overwriteDirectory is the end of an INSERT that changes existing users as an edit of a directory
// does.
var overwriteDirectory = userTable.Overwrite(append([]string{"label", "search", "email_key", "updated_at"},
	directoryColumns...)...)

// directoryUser returns the fields of a user that a directory sets.
func directoryUser(u user) principals.DirectoryUser {
	return principals.DirectoryUser{
		Username: u.Username, Source: or(u.Source),
		SourceID: or(u.SourceID), DisplayName: or(u.DisplayName), FamilyName: or(u.FamilyName),
		GivenName: or(u.GivenName), MiddleName: or(u.MiddleName),
		Email: or(u.Email), Timezone: or(u.Timezone), Superuser: u.Superuser,
		Enabled: u.Enabled, DirectoryDisabled: u.DirectoryDisabled, DirectoryLocked: u.DirectoryLocked,
	}
}

// newUser returns the row of a user of a directory without a password and rights.
func newUser(tenant, domain string, u principals.DirectoryUser, at time.Time) user {
	return user{User: principals.User{
		Tenant: tenant, Domain: domain, Username: u.Username, Source: orNull(u.Source), SourceID: orNull(u.SourceID),
		DisplayName: orNull(u.DisplayName), FamilyName: orNull(u.FamilyName),
		GivenName: orNull(u.GivenName), MiddleName: orNull(u.MiddleName),
		Email: orNull(u.Email), Timezone: orNull(u.Timezone),
		Enabled: u.Enabled, DirectoryDisabled: u.DirectoryDisabled, DirectoryLocked: u.DirectoryLocked,
		Data: json.RawMessage(`{}`), UserFields: json.RawMessage(`{}`), CreatedAt: at, UpdatedAt: at,
	}}
}

// DomainUsers implements dirsync.Store.
func (s *Store) DomainUsers(ctx context.Context, tenant, domain string, each func(principals.DirectoryUser)) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectDirectoryUsers, tenant, domain)
	if err != nil {
		return bunx.Err(err, "User")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		u, err := directoryTable.Scan(rows)
		if err != nil {
			return bunx.Err(err, "User")
		}
		each(directoryUser(u))
	}
	return bunx.Err(errors.Join(rows.Err(), rows.Close()), "User")
}

var selectDirectoryUsers = directoryTable.Select(`WHERE tenant_id = $1 AND domain = $2 ORDER BY username`)

// UserFrom implements principals.DomainStore.
func (s *Store) UserFrom(ctx context.Context, tenant, domain, sourceID string) (principals.User, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := userTable.Scan(c.Row(ctx, selectUserFrom, tenant, domain, sourceID))
	if err != nil {
		return principals.User{}, bunx.Err(err, "User")
	}
	return r.User, nil
}

// The domain is not compared as a bare column, by which SQLite would read all users of the tenant
// in that order until it finds one.
var selectUserFrom = userTable.Select(`WHERE tenant_id = $1 AND domain = $2 AND source_id = $3 ` +
	`ORDER BY username || '' LIMIT 1`)

// UsersFrom implements principals.DomainStore.
func (s *Store) UsersFrom(ctx context.Context, tenant, domain string, sourceIDs []string) ([]principals.User, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	these := c.OneOf(3)
	return two(c.Rows(ctx, userTable.Select(`WHERE tenant_id = $1 AND domain = $2 AND username IN (
		SELECT username FROM tc_users WHERE tenant_id = $1 AND domain = $2 AND source_id `+these+`
		UNION SELECT username FROM tc_scim_users WHERE tenant_id = $1 AND external_id `+these+` AND NOT gone) LIMIT 2`),
		tenant, domain, bunx.Keys(sourceIDs)))
}

// UsersWithEmail implements principals.DomainStore.
func (s *Store) UsersWithEmail(ctx context.Context, tenant, domain, email string) ([]principals.User, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return two(c.Rows(ctx, selectUsersWithEmail, tenant, domain, lowerASCII(email)))
}

var selectUsersWithEmail = userTable.Select(`WHERE tenant_id = $1 AND domain = $2 AND email_key = $3 LIMIT 2`)

func two(rows *sql.Rows, err error) ([]principals.User, error) {
	users, err := bunx.Scan(rows, err, func(rows *sql.Rows) (principals.User, error) {
		u, err := userTable.Scan(rows)
		return u.User, err
	})
	return users, bunx.Err(err, "User")
}

func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// Holders implements principals.ProfileStore.
func (s *Store) Holders(ctx context.Context, tenant string, folded []string) (map[string]principals.Holder, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	holders := map[string]principals.Holder{}
	for some := range slices.Chunk(folded, batch) {
		rows, err := named(c, tenant, "folded", some).ColumnExpr("folded, username, domain").Rows(ctx)
		_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (h principals.Holder, err error) {
			var name string
			err = rows.Scan(&name, &h.Username, &h.Domain)
			holders[name] = h
			return h, err
		})
		if err != nil {
			return nil, bunx.Err(err, "User")
		}
	}
	return holders, nil
}

// named returns a SELECT of users by some of their names. It is not prepared, so it is planned for
// the current sizes of tables. A plan that PostgreSQL keeps from when there were few users could
// read all of them for each name after a scan has added many.
func named(c bunx.Conn, tenant, column string, names []string) *bun.SelectQuery {
	return c.NewSelect().Table("tc_users").Where("tenant_id = ?", tenant).Where(
		"? IN (?)", bun.Ident(column), bun.List(names),
	)
}

// AddDirectoryUsers implements principals.ProfileStore.
func (s *Store) AddDirectoryUsers(
	ctx context.Context, tenant, domain string, all []principals.DirectoryUser, at time.Time,
) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return putDirectoryUsers(ctx, c, tenant, domain, all, nil, at, "")
	})
}

// EditDirectoryUsers implements principals.ProfileStore.
func (s *Store) EditDirectoryUsers(
	ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*principals.DirectoryUser),
) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(usernames, batch) {
			users, err := someDirectoryUsers(ctx, c, tenant, some)
			if err != nil {
				return err
			}
			var changed []principals.DirectoryUser
			typed := map[string]bool{} // users that keep the e-mail address they typed
			for _, r := range users {
				was := directoryUser(r)
				u := was
				edit(&u)
				u.Username, u.Superuser = was.Username, was.Superuser
				if u != was {
					typed[u.Username] = r.EmailTyped && u.Email == was.Email
					changed = append(changed, u)
				}
			}
			// The rows exist, so neither the domain is written nor other columns that are not in
			// overwriteDirectory.
			err = putDirectoryUsers(ctx, c, tenant, "", changed, typed, at, overwriteDirectory)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// someDirectoryUsers reads and locks users.
func someDirectoryUsers(ctx context.Context, c bunx.Conn, tenant string, usernames []string) ([]user, error) {
	rows, err := c.Lock(named(
		c, tenant, "username", usernames,
	).ColumnExpr(directoryTable.Names).OrderExpr("username")).Rows(ctx)
	users, err := bunx.Scan(rows, err, func(rows *sql.Rows) (user, error) { return directoryTable.Scan(rows) })
	return users, bunx.Err(err, "User")
}

// putDirectoryUsers writes rows, a batch with one statement. typed are the users that have typed
// their e-mail addresses themselves.
func putDirectoryUsers(
	ctx context.Context, c bunx.Conn, tenant, domain string, all []principals.DirectoryUser,
	typed map[string]bool, at time.Time, onConflict string,
) error {
	rows := make([]user, 0, min(len(all), batch))
	for some := range slices.Chunk(all, batch) {
		rows = rows[:0]
		for _, u := range some {
			row := newUser(tenant, domain, u, at)
			row.EmailTyped = typed[u.Username]
			rows = append(rows, row)
		}
		if _, err := userTable.Insert(ctx, c, onConflict, rows...); err != nil {
			return bunx.Err(err, "A user with this name")
		}
	}
	return nil
}

// RenameUsers implements principals.DomainStore.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string, at time.Time) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		usernames := slices.Sorted(maps.Keys(names))
		if err := lockUsers(ctx, c, tenant, usernames); err != nil {
			return err
		}
		for some := range slices.Chunk(usernames, batch) {
			users, err := someDirectoryUsers(ctx, c, tenant, some)
			if err != nil {
				return err
			}
			var args []any
			for _, u := range users {
				was := u.Username
				u.Username = names[was]
				args = append(args, was, u.Username, foldedOf(&u), labelOf(&u), searchOf(&u))
			}
			if len(users) == 0 {
				continue
			}
			_, err = c.Exec(ctx, `WITH names (was, becomes, folded, label, search) AS (VALUES `+
				bunx.Values(len(users), 5)+`)
				UPDATE tc_users SET username = becomes, folded = names.folded, label = names.label, search = names.search, updated_at = $`+
				strconv.Itoa(len(args)+1)+` FROM names WHERE tenant_id = $`+strconv.Itoa(len(args)+2)+
				` AND username = was`,
				append(args, bunx.At(at), tenant)...)
			if err != nil {
				return bunx.Err(err, "A user with this name")
			}
		}
		return nil
	})
}
