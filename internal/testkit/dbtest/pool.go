package dbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

// pool has the databases of tests that have ended, for other tests. Emptying one takes a PostgreSQL
// a tenth of the time of creating and dropping it.
var pool struct {
	sync.Mutex
	idle map[string][]*pooled // by template
}

// pooled is a copy of a template that tests use one after the other.
type pooled struct {
	name    string
	admin   *bun.DB                    // as a superuser, to which policies do not apply
	rows    map[string]json.RawMessage // rows of the template by table: JSON arrays
	catalog string
}

// borrow returns an idle copy of a template, or a new one. It is returned to the pool when the test
// ends.
func borrow(t testing.TB, template string) string {
	t.Helper()
	pool.Lock()
	var p *pooled
	if idle := pool.idle[template]; len(idle) > 0 {
		p, pool.idle[template] = idle[len(idle)-1], idle[:len(idle)-1]
	}
	pool.Unlock()
	if p == nil {
		p = newPooled(t, template)
	}
	t.Cleanup(func() {
		if p.reset() != nil { // the test has changed tables, or killed the server
			_ = p.admin.Close()
			drop(p.name)
			return
		}
		pool.Lock()
		defer pool.Unlock()
		if pool.idle == nil {
			pool.idle = map[string][]*pooled{}
		}
		pool.idle[template] = append(pool.idle[template], p)
	})
	return p.name
}

func newPooled(t testing.TB, template string) *pooled {
	t.Helper()
	p := &pooled{name: create(t, template)}
	u, err := url.Parse(Server(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + p.name
	if p.admin, err = engines.Open(u.String()); err != nil {
		t.Fatal(err)
	}
	if p.catalog, err = p.look(); err != nil {
		t.Fatal(err)
	}
	if p.rows, err = p.content(); err != nil {
		t.Fatal(err)
	}
	return p
}

// content returns the rows of all tables that have any.
func (p *pooled) content() (map[string]json.RawMessage, error) {
	var tables []string
	err := p.admin.NewRaw(`SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace `+
		`AND relkind = 'r' AND pg_relation_size(oid) > 0 ORDER BY relname`).
		Scan(context.Background(), &tables)
	rows := map[string]json.RawMessage{}
	for _, table := range tables {
		var all []byte
		if err == nil {
			err = p.admin.NewRaw(fmt.Sprintf("SELECT json_agg(t) FROM %q t", table)).Scan(context.Background(), &all)
		}
		if all != nil {
			rows[table] = all
		}
	}
	return rows, err
}

// look returns a text that changes with the catalogs: the schema, rights, settings and statistics.
func (p *pooled) look() (s string, err error) {
	err = p.admin.NewRaw(`SELECT concat_ws(' ',
		(SELECT md5(string_agg(concat_ws(' ', oid, relname, relowner, relkind, relnatts, relchecks, relhastriggers, relrowsecurity, relforcerowsecurity, relacl, reloptions), ',' ORDER BY oid)) FROM pg_class WHERE oid >= 16384),
		(SELECT md5(string_agg(concat_ws(' ', attrelid, attnum, attname, atttypid, attnotnull, atthasdef, attisdropped, attacl), ',' ORDER BY attrelid, attnum)) FROM pg_attribute WHERE attrelid >= 16384),
		(SELECT md5(string_agg(concat_ws(' ', tgrelid, tgname, tgenabled), ',' ORDER BY oid)) FROM pg_trigger),
		(SELECT md5(string_agg(concat_ws(' ', oid, proname, prosrc), ',' ORDER BY oid)) FROM pg_proc WHERE oid >= 16384),
		(SELECT md5(string_agg(concat_ws(' ', oid, polname), ',' ORDER BY oid)) FROM pg_policy),
		(SELECT md5(string_agg(concat_ws(' ', oid, nspname, nspacl), ',' ORDER BY oid)) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'),
		(SELECT count(*) FROM pg_extension),
		(SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())),
		(SELECT datacl FROM pg_database WHERE datname = current_database()),
		(SELECT count(*) FROM pg_statistic WHERE starelid >= 16384))`).Scan(context.Background(), &s)
	return s, err
}

// alone ends all other connections, and returns when they have ended. PostgreSQL itself would check
// only every 100 ms.
func (p *pooled) alone(ctx context.Context) error {
	for range 5000 {
		var others int
		err := p.admin.NewRaw(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity `+
			`WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(ctx, &others)
		if err != nil || others == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s is still in use", p.name)
}

// reset restores the rows of the template in a database. It fails if a test has changed more than
// rows.
func (p *pooled) reset() error {
	ctx := context.Background()
	if err := p.alone(ctx); err != nil {
		return err
	}
	s, err := p.look()
	if err != nil {
		return err
	}
	if s != p.catalog {
		return fmt.Errorf("a test has changed more than rows of %s", p.name)
	}
	return p.admin.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		// A replica ignores foreign keys and triggers. DELETE is cheaper than new files, but leaves
		// dead rows, which the planner sees.
		if _, err := tx.ExecContext(ctx, `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DO $$ DECLARE r record; BEGIN
			FOR r IN SELECT oid::regclass AS name, pg_relation_size(oid) AS size FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' LOOP
				IF r.size > 65536 THEN EXECUTE 'TRUNCATE ' || r.name || ' CASCADE';
				ELSIF r.size > 0 THEN EXECUTE 'DELETE FROM ' || r.name;
				END IF;
			END LOOP; END $$`); err != nil {
			return err
		}
		for table, rows := range p.rows {
			if _, err := tx.ExecContext(
				ctx,
				fmt.Sprintf("INSERT INTO %[1]q SELECT * FROM json_populate_recordset(NULL::%[1]q, ?)", table),
				string(rows),
			); err != nil {
				return err
			}
		}
		return nil
	})
}
