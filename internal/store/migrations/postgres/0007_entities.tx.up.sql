CREATE TABLE tc_entities (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    kind        text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    name        text NOT NULL,
    label       text COLLATE "C" NOT NULL,
    search      text COLLATE "C" NOT NULL,
    slug        text COLLATE "C",
    description text,
    owner_id    text COLLATE "C" NOT NULL,
    data        text NOT NULL,
    editing_id  text COLLATE "C",
    system      boolean NOT NULL,
    source      text,
    source_id   text COLLATE "C",
    created_at  timestamptz(6) NOT NULL,
    updated_at  timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);
CREATE UNIQUE INDEX tc_entities_slug ON tc_entities (tenant_id, kind, owner_id, slug) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_label ON tc_entities (tenant_id, kind, label, id) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_created ON tc_entities (tenant_id, kind, created_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_updated ON tc_entities (tenant_id, kind, updated_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_owner ON tc_entities (tenant_id, owner_id, kind, id);

CREATE TABLE tc_library_files (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    library_id   text COLLATE "C" NOT NULL,
    path         text COLLATE "C" NOT NULL,
    folded       text COLLATE "C" NOT NULL,
    blob_id      text COLLATE "C" NOT NULL,
    size         bigint NOT NULL,
    content_type text NOT NULL,
    updated_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, library_id, path)
);
CREATE UNIQUE INDEX tc_library_files_folded ON tc_library_files (tenant_id, library_id, folded);
CREATE INDEX tc_library_files_updated ON tc_library_files (tenant_id, library_id, updated_at, path);
