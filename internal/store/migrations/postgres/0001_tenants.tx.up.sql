CREATE TABLE tc_tenants (
    tenant_id  text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    settings   text NOT NULL,
    key_check  text NOT NULL,
    created_at timestamptz(6) NOT NULL,
    updated_at timestamptz(6) NOT NULL
);
