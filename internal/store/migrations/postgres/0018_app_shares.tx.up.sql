-- What the users, teams and everyone of a tenant may do with an app. Rows follow renamed users by apps' Hooks.
CREATE TABLE tc_app_shares (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    entity_id    text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    access_level smallint NOT NULL,
    roles        text NOT NULL, -- a JSON array
    created_at   timestamptz(6) NOT NULL,
    updated_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, entity_id, principal_id)
);
CREATE INDEX tc_app_shares_principal ON tc_app_shares (tenant_id, principal_id, entity_id, access_level);
