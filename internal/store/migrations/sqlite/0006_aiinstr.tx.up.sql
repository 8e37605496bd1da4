CREATE TABLE tc_ai_instructions (
    tenant_id   text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id          text NOT NULL,
    slug        text NOT NULL,
    search      text NOT NULL,
    description text,
    content     text NOT NULL,
    owner_id    text NOT NULL,
    created_at  text NOT NULL,
    updated_at  text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX tc_ai_instructions_slug ON tc_ai_instructions (tenant_id, slug);
CREATE INDEX tc_ai_instructions_owner ON tc_ai_instructions (tenant_id, owner_id, id);
CREATE INDEX tc_ai_instructions_created ON tc_ai_instructions (tenant_id, created_at, id);
CREATE INDEX tc_ai_instructions_updated ON tc_ai_instructions (tenant_id, updated_at, id);
