package pgsafe

import (
	"database/sql"
	"testing"

	"github.com/matryer/is"
)

// BenchmarkRead reads one row by its key with one caller. A ping costs about one round trip.
func BenchmarkRead(b *testing.B) {
	url := inSchema(b)
	safe := openSafe(b, url, Config{})
	exec(b, safe, "create table t (k int primary key, v text)")
	exec(b, safe, "insert into t select i, 'v' || i from generate_series(1, 1000) i")
	exec(b, safe, "analyze t")
	read := func(db *sql.DB) func(*testing.B) {
		return func(b *testing.B) {
			is.New(b).NoErr(db.Ping())
			for i := 0; b.Loop(); i++ {
				one[string](b, db, "select v from t where k = $1", i%1000+1)
			}
		}
	}
	b.Run("bare", read(openBare(b, url)))
	b.Run("safe", read(safe))
	b.Run("safe-tenant", read(openSafe(b, url, byContext)))
	b.Run("ping", func(b *testing.B) {
		for b.Loop() {
			is.New(b).NoErr(safe.PingContext(b.Context()))
		}
	})
}
