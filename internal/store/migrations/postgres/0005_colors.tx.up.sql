CREATE TABLE tc_colors (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    key        text COLLATE "C" NOT NULL,
    search     text COLLATE "C" NOT NULL,
    color      text NOT NULL,
    source     text COLLATE "C",
    created_at timestamptz(6) NOT NULL,
    updated_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, key)
);
