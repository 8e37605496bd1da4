CREATE TABLE tc_tenants (
    tenant_id  text PRIMARY KEY,
    name       text NOT NULL,
    settings   text NOT NULL,
    key_check  text NOT NULL,
    created_at text NOT NULL,
    updated_at text NOT NULL
) STRICT;
