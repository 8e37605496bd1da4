package bunx

import (
	"context"
	"maps"
	"slices"
	"strconv"
)

// renameBatch is the number of names that one statement changes.
const renameBatch = 500

// Is is a column and the value that it must have.
type Is struct {
	Column string
	Value  any
}

// Rename replaces old names by new ones in a column of a table of one tenant, in the rows that meet
// the conditions only. names maps old names to new ones, and a new name must not be an old one.
func (c Conn) Rename(ctx context.Context, tenant, table, column string, names map[string]string, only ...Is) error {
	for some := range slices.Chunk(slices.Sorted(maps.Keys(names)), renameBatch) {
		var args []any
		for _, was := range some {
			args = append(args, was, names[was])
		}
		where := ""
		for _, is := range append([]Is{{"tenant_id", tenant}}, only...) {
			args = append(args, is.Value)
			where += is.Column + ` = $` + strconv.Itoa(len(args)) + ` AND `
		}
		_, err := c.Exec(ctx, `WITH names (was, becomes) AS (VALUES `+Values(len(some), 2)+`)
			UPDATE `+table+` SET `+column+` = (SELECT becomes FROM names WHERE was = `+table+`.`+column+`)
			WHERE `+where+column+` IN (SELECT was FROM names)`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}
