CREATE TABLE tc_bundles (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id          text COLLATE "C" NOT NULL,
    name        text NOT NULL,
    slug        text COLLATE "C" NOT NULL,
    label       text COLLATE "C" NOT NULL,
    search      text COLLATE "C" NOT NULL,
    description text,
    created_at  timestamptz(6) NOT NULL,
    updated_at  timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tc_bundles_slug ON tc_bundles (tenant_id, slug);
CREATE INDEX tc_bundles_label ON tc_bundles (tenant_id, label, id);
CREATE INDEX tc_bundles_created ON tc_bundles (tenant_id, created_at, id);
CREATE INDEX tc_bundles_updated ON tc_bundles (tenant_id, updated_at, id);

CREATE TABLE tc_bundle_entries (
    tenant_id  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    bundle_id  text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    entity_id  text COLLATE "C" NOT NULL,
    data       text NOT NULL,
    created_at timestamptz(6) NOT NULL,
    updated_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, bundle_id) REFERENCES tc_bundles ON DELETE CASCADE
);
CREATE UNIQUE INDEX tc_bundle_entries_reference ON tc_bundle_entries (tenant_id, bundle_id, type, entity_id);
CREATE INDEX tc_bundle_entries_created ON tc_bundle_entries (tenant_id, bundle_id, created_at, id);

CREATE TABLE tc_deployments (
    tenant_id     text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    source_tenant text COLLATE "C" NOT NULL,
    bundle_id     text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    entity_id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, source_tenant, bundle_id, kind, entity_id)
);
CREATE INDEX tc_deployments_entity ON tc_deployments (tenant_id, kind, entity_id);
