-- The SQL databases of apps and drafts. Their passwords are sealed here, and no longer with the apps.
CREATE TABLE tc_workspaces (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id     text NOT NULL,
    engine     text NOT NULL,
    password   text NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, app_id)
) STRICT;
ALTER TABLE tc_apps DROP COLUMN db_role_password;
