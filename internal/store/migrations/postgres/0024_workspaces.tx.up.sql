-- The SQL databases of apps and drafts. Their passwords are sealed here, and no longer with the apps.
CREATE TABLE tc_workspaces (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id     text COLLATE "C" NOT NULL,
    engine     text COLLATE "C" NOT NULL,
    password   text NOT NULL,
    created_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, app_id)
);
ALTER TABLE tc_apps DROP COLUMN db_role_password;
