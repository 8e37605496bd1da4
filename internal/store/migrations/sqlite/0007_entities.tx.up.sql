CREATE TABLE tc_entities (
    tenant_id   text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    kind        text NOT NULL,
    id          text NOT NULL,
    name        text NOT NULL,
    label       text NOT NULL,
    search      text NOT NULL,
    slug        text,
    description text,
    owner_id    text NOT NULL,
    data        text NOT NULL,
    editing_id  text,
    system      integer NOT NULL,
    source      text,
    source_id   text,
    created_at  text NOT NULL,
    updated_at  text NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
) STRICT;
CREATE UNIQUE INDEX tc_entities_slug ON tc_entities (tenant_id, kind, owner_id, slug) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_label ON tc_entities (tenant_id, kind, label, id) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_created ON tc_entities (tenant_id, kind, created_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_updated ON tc_entities (tenant_id, kind, updated_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_entities_owner ON tc_entities (tenant_id, owner_id, kind, id);

CREATE TABLE tc_library_files (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    library_id   text NOT NULL,
    path         text NOT NULL,
    folded       text NOT NULL,
    blob_id      text NOT NULL,
    size         integer NOT NULL,
    content_type text NOT NULL,
    updated_at   text NOT NULL,
    PRIMARY KEY (tenant_id, library_id, path)
) STRICT;
CREATE UNIQUE INDEX tc_library_files_folded ON tc_library_files (tenant_id, library_id, folded);
CREATE INDEX tc_library_files_updated ON tc_library_files (tenant_id, library_id, updated_at, path);
