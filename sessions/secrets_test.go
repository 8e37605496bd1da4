package sessions_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	principalstore "github.com/tenantcontent/tenantcontent/principals/bunstore"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// dump gives every value of every table that a tenant can see, a line each.
func dump(t *testing.T, db *bun.DB, tenant string) string {
	t.Helper()
	is := is.New(t)
	ctx, c := bunx.For(t.Context(), db, tenant)
	list := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if c.Postgres() {
		list = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()"
	}
	var names []string
	is.NoErr(c.NewRaw(list).Scan(ctx, &names))
	is.True(len(names) > 5)
	var out strings.Builder
	for _, name := range names {
		writeRows(ctx, t, c, name, &out)
	}
	return out.String()
}

func writeRows(ctx context.Context, t *testing.T, c bunx.Conn, table string, out *strings.Builder) {
	t.Helper()
	is := is.New(t)
	rows, err := c.Rows(ctx, "SELECT * FROM "+table)
	is.NoErr(err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	is.NoErr(err)
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	for rows.Next() {
		is.NoErr(rows.Scan(values...))
		for i, v := range values {
			v = *v.(*any)
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			fmt.Fprintf(out, "%s.%s %v\n", table, columns[i], v)
		}
	}
	is.NoErr(rows.Err())
}

func TestNoSecretIsStored(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		login := f.login(t).Token
		made, token := f.token(t, sessions.NewToken{})
		stored := dump(t, f.db, "acme")
		is.True(strings.Contains(stored, "tc_tokens.secret_hash "+made.SecretHash)) // the dump sees the rows
		is.True(strings.Contains(stored, "tc_sessions.username jo"))
		for _, credential := range []string{login, token} {
			secret := credential[strings.LastIndex(credential, ".")+1:]
			raw, err := base64.RawURLEncoding.DecodeString(secret)
			is.NoErr(err)
			is.Equal(len(raw), 32)
			for _, form := range []string{credential, secret, string(raw), fmt.Sprintf("%x", raw), password} {
				is.True(!strings.Contains(stored, form))
			}
		}
	})
}

func TestRefusedLoginsTakeTheSameTime(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	f.users = principals.New(principals.Options{Store: principalstore.New(f.db)}) // at the usual cost
	_, err := f.users.AddSuperuser(t.Context(), "acme", "kim", password)
	is.NoErr(err)
	s := sessions.New(sessions.Options{Store: f.spy, Directory: f.users, Tenants: &f.tenants})
	best := map[string]time.Duration{}
	for range 5 {
		for _, c := range [][4]string{
			{"acme", "local", "kim", "wrong horse battery"}, {"acme", "local", "nobody", password},
			{"nowhere", "local", "kim", password}, {"acme", "ldap", "kim", password},
		} {
			began := time.Now()
			_, err := s.Login(t.Context(), c[0], c[1], c[2], c[3])
			is.True(err != nil)
			took, key := time.Since(began), fmt.Sprint(c)
			if best[key] == 0 || took < best[key] {
				best[key] = took
			}
		}
	}
	shortest, longest := time.Hour, time.Duration(0)
	for _, took := range best {
		shortest, longest = min(shortest, took), max(longest, took)
	}
	t.Log(best)
	is.True(longest < 3*shortest) // one hashing each; without it a refusal is 20 times faster
}
