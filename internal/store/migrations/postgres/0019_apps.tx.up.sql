-- Apps leave the table of the ready kinds. Of the drafts of an app the newest stays, as an app has one draft.
CREATE TABLE tc_apps (
    tenant_id            text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id                   text COLLATE "C" NOT NULL,
    type                 text NOT NULL,
    name                 text NOT NULL,
    label                text COLLATE "C" NOT NULL,
    search               text COLLATE "C" NOT NULL,
    slug                 text COLLATE "C",
    description          text,
    owner_id             text COLLATE "C" NOT NULL,
    defn                 text NOT NULL,
    env_sealed           text,
    settings             text NOT NULL,
    origin               text,
    library_id           text COLLATE "C" NOT NULL,
    editing_id           text COLLATE "C",
    base                 text,
    editing_session      text,
    editing_heartbeat_at timestamptz(6),
    editing_locked_by    text COLLATE "C",
    shared               boolean NOT NULL,
    is_managed           boolean NOT NULL,
    folder_id            text,
    datasets             text NOT NULL, -- a JSON array
    tags                 text NOT NULL, -- a JSON array
    source               text,
    source_id            text COLLATE "C",
    defn_updated_at      timestamptz(6),
    deployed_at          timestamptz(6),
    deleted_at           timestamptz(6),
    webhook_secret       text,
    db_role_password     text,
    created_at           timestamptz(6) NOT NULL,
    updated_at           timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tc_apps_slug ON tc_apps (tenant_id, owner_id, slug) WHERE editing_id IS NULL AND deleted_at IS NULL;
CREATE UNIQUE INDEX tc_apps_draft ON tc_apps (tenant_id, editing_id) WHERE editing_id IS NOT NULL;
CREATE UNIQUE INDEX tc_apps_library ON tc_apps (tenant_id, library_id);
CREATE INDEX tc_apps_owner ON tc_apps (tenant_id, owner_id, id);
CREATE INDEX tc_apps_label ON tc_apps (tenant_id, label, id) WHERE editing_id IS NULL AND deleted_at IS NULL;
CREATE INDEX tc_apps_owner_label ON tc_apps (tenant_id, owner_id, label, id) WHERE editing_id IS NULL AND deleted_at IS NULL;
CREATE INDEX tc_apps_created ON tc_apps (tenant_id, created_at, id) WHERE editing_id IS NULL AND deleted_at IS NULL;
CREATE INDEX tc_apps_owner_created ON tc_apps (tenant_id, owner_id, created_at, id) WHERE editing_id IS NULL AND deleted_at IS NULL;
CREATE INDEX tc_apps_updated ON tc_apps (tenant_id, updated_at, id) WHERE editing_id IS NULL AND deleted_at IS NULL;
CREATE INDEX tc_apps_owner_updated ON tc_apps (tenant_id, owner_id, updated_at, id) WHERE editing_id IS NULL AND deleted_at IS NULL;

ALTER TABLE tc_entities NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
INSERT INTO tc_apps (tenant_id, id, type, name, label, search, slug, description, owner_id, defn, settings, library_id, editing_id, shared, is_managed,
        datasets, tags, source, source_id, created_at, updated_at)
    SELECT tenant_id, id, 'report', name, label, search, slug, description, owner_id, data, '{}', id, editing_id, false, false, '[]', '[]', source, source_id,
        created_at, updated_at
    FROM tc_entities e WHERE kind = 'app' AND (editing_id IS NULL
        OR EXISTS (SELECT 1 FROM tc_entities o WHERE o.tenant_id = e.tenant_id AND o.kind = 'app' AND o.id = e.editing_id AND o.editing_id IS NULL)
        AND NOT EXISTS (SELECT 1 FROM tc_entities n WHERE n.tenant_id = e.tenant_id AND n.kind = 'app' AND n.editing_id = e.editing_id
            AND (n.updated_at, n.id) > (e.updated_at, e.id)));
DELETE FROM tc_entities WHERE kind = 'app';
