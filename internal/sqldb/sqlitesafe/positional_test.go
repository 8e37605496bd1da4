package sqlitesafe

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// list returns $from, … $to, separated by parts.
func list(from, to int, parts string) string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprintf("$%d", i))
	}
	return strings.Join(all, parts)
}

func TestPositional(t *testing.T) {
	is := is.New(t)
	marks := strings.TrimSuffix(strings.Repeat("?,", 40), ",")
	is.Equal(
		positional("INSERT INTO t VALUES ("+list(1, 40, ",")+") ON CONFLICT DO NOTHING", 40),
		"INSERT INTO t VALUES ("+marks+") ON CONFLICT DO NOTHING",
	)
	is.Equal(
		positional("SELECT n FROM t WHERE who = $1 AND n IN ("+list(2, 40, ",")+")", 40),
		"SELECT n FROM t WHERE who = ? AND n IN ("+marks[2:]+")",
	)

	forty := list(1, 40, ",")
	for _, query := range []string{
		"SELECT " + list(2, 41, ","),          // not from 1
		"SELECT $2,$1," + list(3, 40, ","),    // not in order
		"SELECT " + forty + ",$7",             // one is repeated
		"SELECT " + list(1, 39, ","),          // one is missing
		"SELECT " + list(1, 41, ","),          // one too many
		"SELECT '$1'," + forty,                // in a text
		`SELECT "$1",` + forty,                // in a name
		"SELECT `$1`," + forty,                // in a name
		"SELECT [$1]," + forty,                // in a name
		"SELECT a$1," + list(2, 40, ","),      // a part of a name
		"SELECT $1a," + list(2, 40, ","),      // another name
		"SELECT $1(2)," + list(2, 40, ","),    // another name
		"SELECT $1::x," + list(2, 40, ","),    // another name
		"SELECT $a,$1," + list(2, 40, ","),    // another name beside them
		"SELECT ?," + forty,                   // is numbered separately
		"SELECT -- $1\n" + forty,              // in a comment
		"SELECT /* $1 */" + forty,             // in a comment
		"SELECT :a,@b,#1," + list(1, 40, ","), // other names
		"SELECT " + strings.Repeat("$1,", 40), // the same one
		"SELECT $01," + list(2, 40, ","),      // another name
		"SELECT $1" + list(2, 40, ""),         // not separated
		"SELECT " + strings.ReplaceAll(forty, "$40", "$400"),
	} {
		is.Equal(positional(query, 40), query)
	}
	is.Equal(positional("SELECT "+list(1, 32, ","), 32), "SELECT "+list(1, 32, ",")) // few
}

func TestManyArguments(t *testing.T) {
	is, db := is.New(t), pool(t)
	const n = 4000
	var args []any
	for i := range n {
		args = append(args, fmt.Sprintf("%d'); DROP TABLE t; -- $1 ?", i), i)
	}
	pairs := strings.ReplaceAll(strings.TrimSuffix(strings.Repeat("(,),", n), ","), "(,)", "(%s,%s)")
	var names []any
	for i := range 2 * n {
		names = append(names, fmt.Sprintf("$%d", i+1))
	}
	is.NoErr(inTx(t.Context(), db, func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO t (who, n) VALUES "+fmt.Sprintf(pairs, names...), args...)
		return err
	}))
	is.Equal(count(t, db, "SELECT count(*) FROM t WHERE who = n || $1", "'); DROP TABLE t; -- $1 ?"), n)
}
