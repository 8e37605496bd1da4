-- Assistants leave the table of the ready kinds. Of the drafts of an assistant the newest stays, as an assistant has one draft.
CREATE TABLE tc_assistants (
    tenant_id            text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id                   text NOT NULL,
    name                 text NOT NULL,
    label                text NOT NULL,
    search               text NOT NULL,
    slug                 text,
    description          text,
    owner_id             text NOT NULL,
    instructions         text NOT NULL,
    welcome              text,
    dispatcher           integer NOT NULL,
    suggestions          text NOT NULL, -- a JSON array
    model_id             text,
    embedded             integer NOT NULL,
    data                 text NOT NULL,
    skills               text NOT NULL, -- a JSON array
    datasets             text NOT NULL, -- a JSON array
    refs                 text NOT NULL, -- a JSON array
    secrets_sealed       text,
    secrets_at           text,
    library_id           text NOT NULL,
    editing_id           text,
    base                 text,
    editing_session      text,
    editing_heartbeat_at text,
    editing_locked_by    text,
    shared               integer NOT NULL,
    folder_id            text,
    created_at           text NOT NULL,
    updated_at           text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
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
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    entity_id    text NOT NULL,
    principal_id text NOT NULL,
    access_level integer NOT NULL,
    roles        text NOT NULL, -- a JSON array
    created_at   text NOT NULL,
    updated_at   text NOT NULL,
    PRIMARY KEY (tenant_id, entity_id, principal_id)
) STRICT;
CREATE INDEX tc_assistant_shares_principal ON tc_assistant_shares (tenant_id, principal_id, entity_id, access_level);

INSERT INTO tc_assistants (tenant_id, id, name, label, search, slug, description, owner_id, instructions, dispatcher, suggestions, embedded, data, skills,
        datasets, refs, library_id, editing_id, shared, created_at, updated_at)
    SELECT tenant_id, id, name, label, search, slug, description, owner_id, '', 0, '[]', 0, data, '[]', '[]', '[]', id, editing_id, 0,
        created_at, updated_at
    FROM tc_entities e WHERE kind = 'assistant' AND (editing_id IS NULL
        OR EXISTS (SELECT 1 FROM tc_entities o WHERE o.tenant_id = e.tenant_id AND o.kind = 'assistant' AND o.id = e.editing_id AND o.editing_id IS NULL)
        AND NOT EXISTS (SELECT 1 FROM tc_entities n WHERE n.tenant_id = e.tenant_id AND n.kind = 'assistant' AND n.editing_id = e.editing_id
            AND (n.updated_at, n.id) > (e.updated_at, e.id)));
-- All users saw the assistants of the ready kinds, so they still do.
INSERT INTO tc_assistant_shares (tenant_id, entity_id, principal_id, access_level, roles, created_at, updated_at)
    SELECT tenant_id, id, '*', 1, '[]', created_at, updated_at FROM tc_assistants WHERE editing_id IS NULL;
UPDATE tc_assistants SET shared = 1 WHERE editing_id IS NULL;
DELETE FROM tc_entities WHERE kind = 'assistant';
