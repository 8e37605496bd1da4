-- What changed in a tenant, as the change feed keeps it. n grows with each. position is given when the change is read for the first time, after its
-- commit: none comes before a position that was read.
CREATE TABLE tc_changes (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    n          integer NOT NULL,
    position   integer,
    kind       text NOT NULL,
    entity_id  text NOT NULL,
    action     text NOT NULL,
    username   text, -- NULL: the service itself
    before     text, -- JSON
    after      text, -- JSON
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_changes_position ON tc_changes (tenant_id, position) WHERE position IS NOT NULL;
CREATE INDEX tc_changes_new ON tc_changes (tenant_id, n) WHERE position IS NULL;
CREATE INDEX tc_changes_old ON tc_changes (created_at, tenant_id);
CREATE INDEX tc_changes_user ON tc_changes (tenant_id, username);
CREATE INDEX tc_changes_entity ON tc_changes (tenant_id, kind, entity_id);

-- The last position of a feed of changes, and the last one that is not kept any more.
CREATE TABLE tc_change_feeds (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    feed      text NOT NULL,
    last      integer NOT NULL,
    removed   integer NOT NULL,
    PRIMARY KEY (tenant_id, feed)
) STRICT;
