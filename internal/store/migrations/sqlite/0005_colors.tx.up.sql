CREATE TABLE tc_colors (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    key        text NOT NULL,
    search     text NOT NULL,
    color      text NOT NULL,
    source     text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    PRIMARY KEY (tenant_id, key)
) STRICT;
