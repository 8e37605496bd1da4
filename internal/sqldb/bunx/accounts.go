package bunx

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strconv"
)

// The rows of a user that can be many, such as those of the feed, are stored under the account of
// the user. No later user with the same name has that account, so the rows of a deleted user need
// not be deleted in the same transaction. The account of the first user with a name is the name.
// The account of a later one is the name, a slash and the number of deleted users with the name,
// such as jo/2. Names contain no slash.

// Former returns an expression for the number of deleted users with a name, which is an expression.
// $1 is the tenant.
func Former(name string) string {
	return `coalesce((SELECT w.n FROM tc_former_users w WHERE w.tenant_id = $1 AND w.username = ` + name + `), 0)`
}

// Account returns an expression for the account of the user with a name, which is an expression. $1
// is the tenant. It is a SELECT with a LIMIT, which PostgreSQL computes before it searches the
// index of a table with row-level security, because coalesce is not leakproof.
func Account(name string) string {
	return `(SELECT ` + name + ` || coalesce((SELECT '/' || w.n FROM tc_former_users w WHERE w.tenant_id = $1 ` +
		`AND w.username = ` + name + `), '') LIMIT 1)`
}

// UserOf returns an expression for the name of the user whose account is in a column, such as
// f.username. It is NULL if that user was deleted. $1 is the tenant. The LIMIT makes the name a
// column, by which PostgreSQL can search an index: see Conn.Among.
func UserOf(column string) string {
	name := `CASE WHEN ` + column + ` LIKE '%/%' THEN rtrim(rtrim(` + column + `, '0123456789'), '/') ELSE ` +
		column + ` END`
	return `(SELECT CASE WHEN ` + column + ` = ` + Account("named.name") +
		` THEN named.name ELSE '' END FROM (SELECT ` + name + ` AS name LIMIT 1) AS named)`
}

// HoldAccounts locks some principals as HoldPrincipals does, and returns their accounts by name.
func (c Conn) HoldAccounts(ctx context.Context, tenant string, names []string) (map[string]string, error) {
	query := `SELECT p.id, ` + Account("p.id") + ` FROM tc_principals p WHERE p.tenant_id = $1 AND p.id ` +
		c.OneOf(2) + ` ORDER BY p.id`
	if c.Postgres() {
		query += ` FOR KEY SHARE OF p`
	}
	return accounts(c.Rows(ctx, query, tenant, Keys(names)))
}

// HoldUsers locks the rows of some users, and returns the accounts of those that exist by name. It
// does not lock their principals. A transaction that deletes or renames users locks principals
// first, so the two cannot deadlock.
func (c Conn) HoldUsers(ctx context.Context, tenant string, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	query := `SELECT u.username, ` + Account("u.username") +
		` FROM tc_users u WHERE u.tenant_id = $1 AND u.username ` + c.OneOf(2) + ` ORDER BY u.username`
	if c.Postgres() {
		query += ` FOR KEY SHARE OF u`
	}
	return accounts(c.Rows(ctx, query, tenant, Keys(names)))
}

// Accounts returns the accounts of some users, whether they exist or not, by their names.
func (c Conn) Accounts(ctx context.Context, tenant string, names []string) (map[string]string, error) {
	all, err := accounts(c.Rows(
		ctx,
		`SELECT username, username || '/' || n FROM tc_former_users WHERE tenant_id = $1 AND username `+c.OneOf(2),
		tenant, Keys(names),
	))
	for _, name := range names {
		if all[name] == "" {
			all[name] = name
		}
	}
	return all, err
}

func accounts(rows *sql.Rows, err error) (map[string]string, error) {
	all := map[string]string{}
	return all, Err(ScanMap(rows, err, all), "User")
}

// accountBatch is the number of users that one statement counts or renames.
const accountBatch = 500

// CloseAccounts counts some users as deleted, in the transaction that deletes them, and returns
// their former accounts.
func (c Conn) CloseAccounts(ctx context.Context, tenant string, names []string) (closed []string, err error) {
	for some := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(names))), accountBatch) {
		var args []any
		for _, name := range some {
			args = append(args, tenant, name, 1)
		}
		rows, err := c.Rows(ctx, `INSERT INTO tc_former_users (tenant_id, username, n) VALUES `+Values(len(some), 3)+`
			ON CONFLICT (tenant_id, username) DO UPDATE SET n = tc_former_users.n + 1 RETURNING username, n - 1`,
			args...)
		accounts, err := Scan(rows, err, func(rows *sql.Rows) (name string, err error) {
			var before int
			err = rows.Scan(&name, &before)
			if before > 0 {
				name += "/" + strconv.Itoa(before)
			}
			return name, err
		})
		if err != nil {
			return nil, Err(err, "User")
		}
		closed = append(closed, accounts...)
	}
	return closed, nil
}

// RenameAccounts is Rename for the column username of a table that has accounts.
func (c Conn) RenameAccounts(ctx context.Context, tenant, table string, names map[string]string) error {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(names)), accountBatch) {
		become := make([]string, len(some))
		for i, was := range some {
			become[i] = names[was]
		}
		_, err := c.Exec(ctx, `WITH names (was, becomes) AS `+c.Among(2, 2)+`,
			accounts (was, becomes) AS (SELECT `+Account("was")+`, `+Account("becomes")+` FROM names)
			UPDATE `+table+` SET username = (SELECT becomes FROM accounts WHERE was = `+table+`.username)
			WHERE tenant_id = $1 AND username `+c.anyOf(`SELECT was FROM accounts`), tenant, Keys(some, become))
		if err != nil {
			return err
		}
	}
	return nil
}
