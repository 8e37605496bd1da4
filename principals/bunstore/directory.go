package bunstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// batch is how many rows one statement writes.
const batch = 500

// directoryColumns are what scanDirectoryUser reads.
const directoryColumns = `username, coalesce(source, ''), coalesce(source_id, ''), coalesce(display_name, ''), coalesce(family_name, ''),
	coalesce(given_name, ''), coalesce(middle_name, ''), coalesce(email, ''), coalesce(timezone, ''), superuser, enabled, directory_disabled`

func scanDirectoryUser(rows *sql.Rows) (u principals.DirectoryUser, err error) {
	return u, rows.Scan(&u.Username, &u.Source, &u.SourceID, &u.DisplayName, &u.FamilyName, &u.GivenName, &u.MiddleName, &u.Email,
		&u.Timezone, &u.Superuser, &u.Enabled, &u.DirectoryDisabled)
}

// DomainUsers implements dirsync.Store.
func (s *Store) DomainUsers(ctx context.Context, tenant, domain string, each func(principals.DirectoryUser)) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT `+directoryColumns+` FROM tc_users WHERE tenant_id = $1 AND domain = $2 ORDER BY username`, tenant, domain)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		u, err := scanDirectoryUser(rows)
		if err == nil {
			each(u)
		}
		return none, err
	})
	return bunx.Err(err, "User")
}

// UserFrom implements principals.DomainStore.
func (s *Store) UserFrom(ctx context.Context, tenant, domain, sourceID string) (principals.User, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := userTable.Scan(c.Row(ctx, selectUserFrom, tenant, domain, sourceID))
	if err != nil {
		return principals.User{}, bunx.Err(err, "User")
	}
	return r.User, nil
}

// By the bare column SQLite would read all users of the tenant in that order until it finds one.
var selectUserFrom = userTable.Select(`WHERE tenant_id = $1 AND domain = $2 AND source_id = $3 ORDER BY username || '' LIMIT 1`)

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

// named is a SELECT of users by some of their names. It is planned for the tables as they are: one that PostgreSQL keeps
// prepared, from when there were a few users, may go through all of them for each name after a scan has brought many.
func named(c bunx.Conn, tenant, column string, names []string) *bun.SelectQuery {
	return c.NewSelect().Table("tc_users").Where("tenant_id = ?", tenant).Where("? IN (?)", bun.Ident(column), bun.List(names))
}

// AddDirectoryUsers implements principals.ProfileStore.
func (s *Store) AddDirectoryUsers(ctx context.Context, tenant, domain string, all []principals.DirectoryUser, at time.Time) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		return putDirectoryUsers(ctx, c, tenant, domain, all, at, "")
	})
}

// EditDirectoryUsers implements principals.ProfileStore.
func (s *Store) EditDirectoryUsers(ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*principals.DirectoryUser)) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(usernames, batch) {
			users, err := someDirectoryUsers(ctx, c, tenant, some)
			if err != nil {
				return err
			}
			var changed []principals.DirectoryUser
			for _, was := range users {
				u := was
				edit(&u)
				u.Username, u.Superuser = was.Username, was.Superuser
				if u != was {
					changed = append(changed, u)
				}
			}
			// The rows exist, so that only the update of ON CONFLICT runs, which does not write the domain.
			err = putDirectoryUsers(ctx, c, tenant, "", changed, at, ` ON CONFLICT (tenant_id, username) DO UPDATE SET label = excluded.label,
				search = excluded.search, source = excluded.source, source_id = excluded.source_id, display_name = excluded.display_name,
				family_name = excluded.family_name, given_name = excluded.given_name, middle_name = excluded.middle_name,
				email = excluded.email, timezone = excluded.timezone, enabled = excluded.enabled,
				directory_disabled = excluded.directory_disabled, updated_at = excluded.updated_at`)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// someDirectoryUsers reads and locks users.
func someDirectoryUsers(ctx context.Context, c bunx.Conn, tenant string, usernames []string) ([]principals.DirectoryUser, error) {
	rows, err := c.Lock(named(c, tenant, "username", usernames).ColumnExpr(directoryColumns).OrderExpr("username")).Rows(ctx)
	users, err := bunx.Scan(rows, err, scanDirectoryUser)
	return users, bunx.Err(err, "User")
}

// putDirectoryUsers writes rows, a batch with one statement.
func putDirectoryUsers(ctx context.Context, c bunx.Conn, tenant, domain string, all []principals.DirectoryUser, at time.Time, onConflict string) error {
	const columns = 21
	for some := range slices.Chunk(all, batch) {
		args := make([]any, 0, columns*len(some))
		for _, u := range some {
			args = append(args, tenant, u.Username, fold.Name(u.Username), label(u), search(u), domain, orNull(u.Source), orNull(u.SourceID),
				orNull(u.DisplayName), orNull(u.FamilyName), orNull(u.GivenName), orNull(u.MiddleName), orNull(u.Email), orNull(u.Timezone),
				u.Enabled, u.DirectoryDisabled, "{}", "{}", bunx.At(at), bunx.At(at), 0)
		}
		values := strings.ReplaceAll(bunx.Values(len(some), columns), ")", ", false, false, false, false, false, false, false, false)")
		_, err := c.Exec(ctx, `INSERT INTO tc_users (tenant_id, username, folded, label, search, domain, source, source_id, display_name,
			family_name, given_name, middle_name, email, timezone, enabled, directory_disabled, data, user_fields, created_at, updated_at,
			login_attempts, superuser, may_ai, may_create_jobs, may_view_all_teams, may_view_all_users, may_script, mfa, ai_consent)
			VALUES `+values+onConflict, args...)
		if err != nil {
			return bunx.Err(err, "A user with this name")
		}
	}
	return nil
}

func label(u principals.DirectoryUser) string {
	return fold.Text(principals.User{Username: u.Username, DisplayName: orNull(u.DisplayName)}.Label())
}

func search(u principals.DirectoryUser) string {
	return fold.Search(u.Username, u.DisplayName, u.GivenName, u.MiddleName, u.FamilyName, u.Email)
}

// RenameUsers implements principals.DomainStore.
func (s *Store) RenameUsers(ctx context.Context, tenant string, names map[string]string, at time.Time) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(slices.Sorted(maps.Keys(names)), batch) {
			users, err := someDirectoryUsers(ctx, c, tenant, some)
			if err != nil {
				return err
			}
			var args []any
			for _, u := range users {
				was := u.Username
				u.Username = names[was]
				args = append(args, was, u.Username, fold.Name(u.Username), label(u), search(u))
			}
			if len(users) == 0 {
				continue
			}
			_, err = c.Exec(ctx, `WITH names (was, becomes, folded, label, search) AS (VALUES `+bunx.Values(len(users), 5)+`)
				UPDATE tc_users SET username = becomes, folded = names.folded, label = names.label, search = names.search, updated_at = $`+
				strconv.Itoa(len(args)+1)+` FROM names WHERE tenant_id = $`+strconv.Itoa(len(args)+2)+` AND username = was`,
				append(args, bunx.At(at), tenant)...)
			if err != nil {
				return bunx.Err(err, "A user with this name")
			}
		}
		return nil
	})
}
