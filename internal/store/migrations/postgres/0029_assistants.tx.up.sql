-- Assistants leave the table of the ready kinds. Of the drafts of an assistant the newest stays, as an assistant has one draft.
CREATE TABLE tc_assistants (
    tenant_id            text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id                   text COLLATE "C" NOT NULL,
    name                 text NOT NULL,
    label                text COLLATE "C" NOT NULL,
    search               text COLLATE "C" NOT NULL,
    slug                 text COLLATE "C",
    description          text,
    owner_id             text COLLATE "C" NOT NULL,
    instructions         text NOT NULL,
    welcome              text,
    dispatcher           boolean NOT NULL,
    suggestions          text NOT NULL, -- a JSON array
    model_id             text,
    embedded             boolean NOT NULL,
    data                 text NOT NULL,
    skills               text NOT NULL, -- a JSON array
    datasets             text NOT NULL, -- a JSON array
    refs                 text NOT NULL, -- a JSON array
    secrets_sealed       text,
    secrets_at           timestamptz(6),
    library_id           text COLLATE "C" NOT NULL,
    editing_id           text COLLATE "C",
    base                 text,
    editing_session      text,
    editing_heartbeat_at timestamptz(6),
    editing_locked_by    text COLLATE "C",
    shared               boolean NOT NULL,
    folder_id            text,
    created_at           timestamptz(6) NOT NULL,
    updated_at           timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tc_assistants_slug ON tc_assistants (tenant_id, owner_id, slug) WHERE editing_id IS NULL;
CREATE UNIQUE INDEX tc_assistants_draft ON tc_assistants (tenant_id, editing_id) WHERE editing_id IS NOT NULL;
CREATE UNIQUE INDEX tc_assistants_library ON tc_assistants (tenant_id, library_id);
CREATE INDEX tc_assistants_owner ON tc_assistants (tenant_id, owner_id, id);
CREATE INDEX tc_assistants_label ON tc_assistants (tenant_id, label, id) WHERE editing_id IS NULL;
CREATE INDEX tc_assistants_owner_label ON tc_assistants (tenant_id, owner_id, label, id) WHERE editing_id IS NULL;
CREATE INDEX tc_assistants_created ON tc_assistants (tenant_id, created_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_assistants_owner_created ON tc_assistants (tenant_id, owner_id, created_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_assistants_updated ON tc_assistants (tenant_id, updated_at, id) WHERE editing_id IS NULL;
CREATE INDEX tc_assistants_owner_updated ON tc_assistants (tenant_id, owner_id, updated_at, id) WHERE editing_id IS NULL;

-- What the users, teams and everyone of a tenant may do with an assistant.
CREATE TABLE tc_assistant_shares (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    entity_id    text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    access_level smallint NOT NULL,
    roles        text NOT NULL, -- a JSON array
    created_at   timestamptz(6) NOT NULL,
    updated_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, entity_id, principal_id)
);
CREATE INDEX tc_assistant_shares_principal ON tc_assistant_shares (tenant_id, principal_id, entity_id, access_level);

ALTER TABLE tc_entities NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
INSERT INTO tc_assistants (tenant_id, id, name, label, search, slug, description, owner_id, instructions, dispatcher, suggestions, embedded, data, skills,
        datasets, refs, library_id, editing_id, shared, created_at, updated_at)
    SELECT tenant_id, id, name, label, search, slug, description, owner_id, '', false, '[]', false, data, '[]', '[]', '[]', id, editing_id, false,
        created_at, updated_at
    FROM tc_entities e WHERE kind = 'assistant' AND (editing_id IS NULL
        OR EXISTS (SELECT 1 FROM tc_entities o WHERE o.tenant_id = e.tenant_id AND o.kind = 'assistant' AND o.id = e.editing_id AND o.editing_id IS NULL)
        AND NOT EXISTS (SELECT 1 FROM tc_entities n WHERE n.tenant_id = e.tenant_id AND n.kind = 'assistant' AND n.editing_id = e.editing_id
            AND (n.updated_at, n.id) > (e.updated_at, e.id)));
-- All users saw the assistants of the ready kinds, so they still do.
INSERT INTO tc_assistant_shares (tenant_id, entity_id, principal_id, access_level, roles, created_at, updated_at)
    SELECT tenant_id, id, '*', 1, '[]', created_at, updated_at FROM tc_assistants WHERE editing_id IS NULL;
UPDATE tc_assistants SET shared = true WHERE editing_id IS NULL;
DELETE FROM tc_entities WHERE kind = 'assistant';
