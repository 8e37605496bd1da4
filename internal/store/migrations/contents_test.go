package migrations_test

import (
	"context"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// TestLibraryContents: files of libraries from before contents were shared keep their bytes, each
// in a separate content, also with row-level security.
func TestLibraryContents(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "row-level security": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, url string) {
				is, db := is.New(t), open(t, url)
				is.NoErr(migrations.RunBefore(t.Context(), db, "0017"))
				if _, c := bunx.For(t.Context(), db, ""); secured && c.Postgres() {
					_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
					is.NoErr(err)
				}
				for _, tenant := range []string{"acme", "evil"} {
					write(t, db, tenant,
						`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at)
						VALUES ($1, 'x', '{}', 'x', '2026-11-01 00:00:00.000000Z', '2026-11-01 00:00:00.000000Z')`,
						tenant)
					for _, path := range []string{"a", "b"} {
						write(t, db, tenant,
							`INSERT INTO tc_library_files (tenant_id, library_id, path, folded, blob_id, size,
								content_type, updated_at)
							VALUES ($1, 'l', $2, $2, $3, 7, 'text/plain', '2026-11-16 09:00:00.123456Z')`, tenant,
							path, "blob-"+path)
					}
				}
				is.NoErr(migrations.Run(t.Context(), db))
				for _, tenant := range []string{"acme", "evil"} {
					ctx, c := bunx.For(t.Context(), db, tenant)
					var files, contents, forced int
					is.NoErr(c.Row(ctx,
						`SELECT count(*) FROM tc_library_files WHERE tenant_id = $1 AND content_id = 'blob-' ||
							path AND sha256 IS NULL
						AND created_at = updated_at AND size = 7`, tenant).Scan(&files))
					is.Equal(files, 2)
					is.NoErr(c.Row(ctx,
						`SELECT count(*) FROM tc_library_contents WHERE tenant_id = $1 AND id LIKE 'blob-%' `+
							`AND sha256 IS NULL AND size = 7`,
						tenant).Scan(&contents))
					is.Equal(contents, 2)
					if c.Postgres() {
						is.NoErr(c.Row(ctx,
							`SELECT count(*) FROM pg_class WHERE relname IN ('tc_library_files',
								'tc_library_contents', 'tc_library_released')
							AND relnamespace = current_schema()::regnamespace AND relrowsecurity AND
							relforcerowsecurity`).Scan(&forced))
						is.Equal(forced, map[bool]int{true: 3}[secured])
					}
				}
			})
		})
	}
}

func write(t *testing.T, db *bun.DB, tenant, query string, args ...any) {
	t.Helper()
	err := bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, query, args...)
		return err
	})
	is.New(t).NoErr(err)
}

// TestLibraryKinds: the files of libraries of apps and drafts become those of apps, also with
// row-level security.
func TestLibraryKinds(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, db := is.New(t), open(t, url)
		is.NoErr(migrations.RunBefore(t.Context(), db, "0023"))
		if _, c := bunx.For(t.Context(), db, ""); c.Postgres() {
			_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
			is.NoErr(err)
		}
		const at = `'2026-11-01 00:00:00.000000Z'`
		for _, tenant := range []string{"acme", "evil"} {
			write(
				t, db, tenant,
				`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
					`VALUES ($1, 'x', '{}', 'x', `+at+`, `+at+`)`,
				tenant,
			)
			for _, library := range []string{"of-app", "own"} {
				write(t, db, tenant,
					`INSERT INTO tc_library_files (tenant_id, library_id, path, folded, content_id, size,
						content_type, sha256, created_at, updated_at)
					VALUES ($1, $2, 'a', 'a', 'c', 7, 'text/plain', 'd', `+at+`, `+at+`)`, tenant, library)
			}
			write(t, db, tenant,
				`INSERT INTO tc_apps (tenant_id, id, type, name, label, search, owner_id, defn, settings,
					library_id, shared, is_managed, datasets, tags,
				created_at, updated_at) VALUES ($1, 'a', 'report', 'x', 'x', 'x', 'jo', '{}', '{}', 'of-app',
				false, false, '[]', '[]', `+at+`, `+at+`)`,
				tenant)
		}
		is.NoErr(migrations.Run(t.Context(), db))
		for _, tenant := range []string{"acme", "evil"} {
			ctx, c := bunx.For(t.Context(), db, tenant)
			for library, kind := range map[string]string{"of-app": "app", "own": "library"} {
				var got string
				is.NoErr(c.Row(
					ctx,
					`SELECT kind FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND sha256 = 'd' `+
						`AND size = 7`,
					tenant, library,
				).Scan(&got))
				is.Equal(got, kind)
			}
		}
	})
}

// TestAppManifests: deployed apps get the manifest in their files, also with row-level security.
// Drafts and other apps do not get one.
func TestAppManifests(t *testing.T) {
	each(t, func(t *testing.T, url string) {
		is, db := is.New(t), open(t, url)
		is.NoErr(migrations.RunBefore(t.Context(), db, "0058"))
		if _, c := bunx.For(t.Context(), db, ""); c.Postgres() {
			_, err := migrations.EnableRowLevelSecurity(t.Context(), db)
			is.NoErr(err)
		}
		const at = `'2026-11-01 00:00:00.000000Z'`
		for _, tenant := range []string{"acme", "evil"} {
			write(
				t, db, tenant,
				`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
					`VALUES ($1, 'x', '{}', 'x', `+at+`, `+at+`)`,
				tenant,
			)
			for _, app := range []struct {
				id       string
				of       any
				deployed string
				files    []string
			}{
				{"both", nil, at, []string{"app.yaml", "index.html", "informer.yaml"}},
				{"old", nil, at, []string{"app.yaml", "lib/informer.yaml"}}, {"none", nil, at, []string{"index.html"}},
				{"never", nil, "NULL", []string{"informer.yaml"}}, {"draft", "both", at, []string{"informer.yaml"}},
			} {
				write(t, db, tenant,
					`INSERT INTO tc_apps (tenant_id, id, type, name, label, search, owner_id, defn, settings,
						library_id, shared, is_managed, datasets, tags,
					editing_id, deployed_at, created_at, updated_at) VALUES ($1, $2, 'report', 'x', 'x', 'x',
					'jo', '{}', '{}', 'l-' || $3, $4, $4, '[]', '[]', $5, `+app.deployed+`, `+at+`, `+at+`)`,
					tenant, app.id, app.id, false, app.of)
				for _, path := range app.files {
					write(t, db, tenant,
						`INSERT INTO tc_library_files (tenant_id, kind, library_id, path, folded, content_id,
							size, content_type, sha256, created_at, updated_at)
						VALUES ($1, 'app', 'l-' || $2, $3, $4, 'c', 7, 'text/plain', 'd', `+at+`, `+at+`)`, tenant,
						app.id, path, path)
				}
			}
		}
		is.NoErr(migrations.Run(t.Context(), db))
		for _, tenant := range []string{"acme", "evil"} {
			ctx, c := bunx.For(t.Context(), db, tenant)
			rows, err := c.Rows(ctx,
				`SELECT library_id || ' ' || path FROM tc_library_files WHERE tenant_id = $1 AND kind = 'app-manifest'
				AND content_id = 'c' AND size = 7 AND sha256 = 'd' AND folded = path ORDER BY library_id`, tenant)
			all, err := bunx.Scan(rows, err, bunx.Text)
			is.NoErr(err)
			is.Equal(all, []string{"l-both informer.yaml", "l-old app.yaml"})
		}
	})
}
