CREATE TABLE tc_ai_instructions (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id          text COLLATE "C" NOT NULL,
    slug        text COLLATE "C" NOT NULL,
    search      text COLLATE "C" NOT NULL,
    description text,
    content     text NOT NULL,
    owner_id    text COLLATE "C" NOT NULL,
    created_at  timestamptz(6) NOT NULL,
    updated_at  timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tc_ai_instructions_slug ON tc_ai_instructions (tenant_id, slug);
CREATE INDEX tc_ai_instructions_owner ON tc_ai_instructions (tenant_id, owner_id, id);
CREATE INDEX tc_ai_instructions_created ON tc_ai_instructions (tenant_id, created_at, id);
CREATE INDEX tc_ai_instructions_updated ON tc_ai_instructions (tenant_id, updated_at, id);
