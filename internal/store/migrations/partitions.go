package migrations

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// MaxPartitions is the most partitions of a table. A migration on PostgreSQL holds a lock for each
// of them and for their indexes.
const MaxPartitions = 64

// RunPartitioned is Run for a PostgreSQL whose tables are partitioned by a hash of the tenant, with
// the given number of partitions each. The number is chosen once, in an empty database; Run keeps
// it. The table of tenants is not partitioned. Errors: errs.Invalid, also if existing tables have
// another number; errs.Unavailable, naming the setting, if the server has too little memory for the
// locks.
func RunPartitioned(ctx context.Context, db *bun.DB, partitions int) error {
	if partitions < 1 || partitions > MaxPartitions {
		return errs.New(errs.Invalid, "the number of partitions must be between 1 and %d", MaxPartitions)
	}
	return runTwice(ctx, db, partitions)
}

// partitionsOf returns the number of partitions for new tables: that of existing tables, else the
// requested one.
func partitionsOf(ctx context.Context, c bunx.Conn, migrated bool, asked int) (int, error) {
	if !c.Postgres() {
		if asked > 0 {
			return 0, errs.New(errs.Invalid, "partitions need PostgreSQL")
		}
		return 0, nil
	}
	if !migrated {
		return asked, nil
	}
	var have int
	if err := c.Row(
		ctx, "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('tc_users')",
	).Scan(&have); err != nil {
		return 0, bunx.Err(err, "")
	}
	switch {
	case asked == 0 || asked == have:
		return have, nil
	case have == 0:
		return 0, errs.New(
			errs.Invalid,
			"the tables of this database have no partitions: they are chosen when the database is empty",
		)
	}
	return 0, errs.New(
		errs.Invalid,
		"the tables of this database have %d partitions: their number is chosen when the database is empty",
		have,
	)
}

// createTable matches a statement that creates a table: its name, columns and storage parameters.
var createTable = regexp.MustCompile(`(?ms)^CREATE TABLE (tc_\w+) \(\n(.*?)\n\)( WITH \([^)]*\))?;$`)

// setColumn matches a statement that sets parameters of a column.
var setColumn = regexp.MustCompile(`(?m)^ALTER TABLE (tc_\w+) (ALTER COLUMN \w+ SET \([^)]*\));$`)

// partitioned returns a migration whose tables with a tenant are partitioned. Storage parameters
// and parameters of columns are moved to the partitions, because a statement over one partition is
// planned with the statistics of the partition.
func partitioned(text string, partitions int) string {
	text = setColumn.ReplaceAllStringFunc(text, func(statement string) string {
		m := setColumn.FindStringSubmatch(statement)
		for i := range partitions {
			statement += fmt.Sprintf("\nALTER TABLE %s_p%d %s;", m[1], i, m[2])
		}
		return statement
	})
	return createTable.ReplaceAllStringFunc(text, func(statement string) string {
		m := createTable.FindStringSubmatch(statement)
		name, columns, with := m[1], m[2], m[3]
		if name == "tc_tenants" || !strings.Contains(columns, "tenant_id ") {
			return statement
		}
		var all strings.Builder
		_, _ = fmt.Fprintf(&all, "CREATE TABLE %s (\n%s\n) PARTITION BY HASH (tenant_id);", name, columns)
		for i := range partitions {
			_, _ = fmt.Fprintf(
				&all, "\nCREATE TABLE %s_p%d PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d)%s;",
				name, i, name, partitions, i, with,
			)
		}
		return all.String()
	})
}
