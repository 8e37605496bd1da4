package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tenantcontent/tenantcontent/errs"
)

// functions of PostgreSQL that no role but the admin may call in the database of workspaces: they
// change settings, lock, notify or end others, keep objects outside of the schema, run SQL from a
// text, show what other roles have, or the machine. % is any text.
var functions = []string{
	"set_config", "current_setting", "pg_advisory_%", "pg_try_advisory_%",
	"pg_notify", "pg_logical_%", "pg_cancel_backend", "pg_terminate_backend", "pg_export_snapshot",
	"lo_%", "loread", "lowrite", "query_to_xml%", "table_to_xml%", "schema_to_xml%",
	"database_to_xml%", "cursor_to_xml%", "ts_stat", "ts_rewrite", "inet_server_%", "inet_client_%",
	"pg_stat_get_%", "pg_get_viewdef", "pg_get_ruledef", "pg_get_functiondef",
	"pg_get_triggerdef", "pg_relation_filepath", "pg_relation_filenode", "pg_filenode_relation",
	"pg_listening_channels", "pg_notification_queue_usage", "pg_describe_object", "pg_identify_object%",
	"pg_get_object_address", "pg_show_all_settings", "pg_lock_status", "pg_prepared_xact",
	"pg_database_size", "pg_tablespace_%", "pg_relation_size",
	"pg_total_relation_size", "pg_table_size", "pg_indexes_size",
}

// Lockdown returns the SQL that takes from every role what it may do in a database by itself, and
// leaves to a role what a Driver needs. A Driver whose role is a superuser runs it; otherwise a
// superuser runs it once in the database, before the first use and after a change of PostgreSQL's
// version.
func Lockdown(database, role string) string {
	var patterns []string
	for _, f := range functions {
		patterns = append(patterns, "\n      '"+strings.ReplaceAll(f, "_", `\_`)+"'")
	}
	return `REVOKE ALL ON DATABASE ` + quote(database) + ` FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA pg_catalog FROM PUBLIC;
DO $lockdown$
DECLARE f regprocedure; l name;
BEGIN
  FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname LIKE ANY (ARRAY[` +
		strings.Join(patterns, ",") + `
    ]) LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
  FOR l IN SELECT lanname FROM pg_language WHERE lanpltrusted LOOP
    EXECUTE format('REVOKE ALL ON LANGUAGE %I FROM PUBLIC', l);
  END LOOP;
END $lockdown$;
GRANT ALL ON DATABASE ` + quote(database) + ` TO ` + quote(role) + ` WITH GRANT OPTION;
GRANT SELECT ON pg_class, pg_namespace, pg_attribute, pg_roles, pg_proc, pg_language, pg_stat_activity TO ` +
		quote(role) + `;
GRANT EXECUTE ON FUNCTION current_setting(text), pg_advisory_xact_lock(bigint), pg_terminate_backend(integer, bigint),
  pg_total_relation_size(regclass), pg_stat_get_activity(integer) TO ` + quote(role) + `;
`
}

// check makes sure that the database is one for workspaces, and locked.
func (d *Driver) check(ctx context.Context, c *pgx.Conn) error {
	var version int
	var service, creator, bound bool
	err := c.QueryRow(ctx,
		`SELECT current_setting('server_version_num')::int,
			EXISTS (SELECT 1 FROM pg_class WHERE relname = 'tc_tenants'),
		rolsuper OR rolcreaterole, rolsuper FROM pg_roles WHERE rolname = current_user`).Scan(
		&version, &service, &creator, &d.super,
	)
	switch {
	case err != nil:
		return err
	case version < 140000:
		return errs.New(errs.Invalid, "Workspaces need PostgreSQL 14 or newer.")
	case service:
		return errs.New(
			errs.Invalid,
			"The database of the service itself cannot have workspaces: name another database in "+
				"TENANTCONTENT_WORKSPACES, best in another cluster.",
		)
	case !creator:
		return errs.New(errs.Invalid, "The role in TENANTCONTENT_WORKSPACES cannot make roles: it needs CREATEROLE.")
	}
	if bound, err = locked(ctx, c); err != nil || bound {
		return err
	}
	if !d.super {
		return errs.New(
			errs.Invalid,
			"The database of workspaces is not locked: let a superuser run in it what docs/workspaces.md says.",
		)
	}
	if _, err := c.PgConn().Exec(ctx, Lockdown(d.config.Database, d.config.User)).ReadAll(); err != nil {
		return err
	}
	if bound, err = locked(ctx, c); err == nil && !bound {
		err = errs.New(errs.Internal, "postgres: the database of workspaces is not locked by Lockdown")
	}
	return err
}

// locked reports whether Lockdown has been run in the database.
func locked(ctx context.Context, c *pgx.Conn) (yes bool, err error) {
	patterns := make([]string, len(functions))
	for i, f := range functions {
		patterns[i] = strings.ReplaceAll(f, "_", `\_`)
	}
	err = c.QueryRow(ctx,
		`SELECT NOT has_database_privilege('public', current_database(), 'CONNECT')
			AND NOT has_database_privilege('public', current_database(), 'TEMP')
		AND NOT has_schema_privilege('public', 'public', 'CREATE')
		AND NOT has_table_privilege('public', 'pg_catalog.pg_class', 'SELECT')
		AND NOT EXISTS (SELECT 1 FROM pg_language WHERE lanpltrusted AND has_language_privilege('public', oid, 'USAGE'))
		AND NOT EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname LIKE ANY ($1)
			AND has_function_privilege('public', oid, 'EXECUTE'))`,
		patterns).Scan(&yes)
	return yes, err
}
