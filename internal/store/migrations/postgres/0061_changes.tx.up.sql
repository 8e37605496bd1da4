-- What changed in a tenant, as the change feed keeps it. n is drawn at the end of the transaction of the change, so that it grows as the changes of a
-- row do. position is given when the change is read for the first time, after its commit: none comes before a position that was read.
CREATE SEQUENCE tc_changes_n;
CREATE TABLE tc_changes (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    n          bigint NOT NULL DEFAULT nextval('tc_changes_n'),
    position   bigint,
    kind       text COLLATE "C" NOT NULL,
    entity_id  text COLLATE "C" NOT NULL,
    action     text COLLATE "C" NOT NULL,
    username   text COLLATE "C", -- NULL: the service itself
    before     text, -- JSON
    after      text, -- JSON
    created_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_changes_position ON tc_changes (tenant_id, position) WHERE position IS NOT NULL;
CREATE INDEX tc_changes_new ON tc_changes (tenant_id, n) WHERE position IS NULL;
CREATE INDEX tc_changes_old ON tc_changes (created_at, tenant_id);
CREATE INDEX tc_changes_user ON tc_changes (tenant_id, username);
CREATE INDEX tc_changes_entity ON tc_changes (tenant_id, kind, entity_id);

-- The last position of a feed of changes, and the last one that is not kept any more.
CREATE TABLE tc_change_feeds (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    feed      text COLLATE "C" NOT NULL,
    last      bigint NOT NULL,
    removed   bigint NOT NULL,
    PRIMARY KEY (tenant_id, feed)
);
