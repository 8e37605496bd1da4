package sessions_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// dump returns every value of every table that a tenant can see, a line each.
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

// TestPasswordsOfNobodyAreNotHashed: a stranger cannot make the service hash for users who do not
// exist. A hashing is seen by the memory that it takes.
func TestPasswordsOfNobodyAreNotHashed(t *testing.T) {
	is, f := is.New(t), newFixture(t, dbtest.SQLite(t))
	f.users = principals.New(principals.Options{Store: principalstore.New(f.db)}) // at the usual cost
	_, err := f.users.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
		Tenant: "acme", Username: "kim", Password: password,
	})
	is.NoErr(err)
	s := sessions.New(sessions.Options{Store: f.spy, Authenticator: f.users.Unchecked(), Tenants: &f.tenants})
	for c, hashings := range map[[4]string]float64{
		{"acme", "local", "kim", "wrong horse battery"}: 1, {"acme", "local", "nobody", password}: 0,
		{"nowhere", "local", "kim", password}: 0, {"acme", "ldap", "kim", password}: 0,
	} {
		before := allocated()
		_, err := s.Login(t.Context(), principals.Credentials{
			Tenant: c[0], Domain: c[1], Username: c[2], Password: c[3],
		})
		took := float64(allocated()-before) / 1024 / float64(principals.DefaultCost().Memory)
		is.True(err != nil)
		if took < hashings || took > hashings+0.5 {
			t.Errorf("%v takes %.2f hashings", c, took)
		}
	}
}

// allocated is how many bytes were allocated until now, whether they are free again or not.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
