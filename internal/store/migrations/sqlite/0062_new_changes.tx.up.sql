-- Changes without a position. A write adds them with no other index to keep than the key. They get their position, and move to tc_changes, when they are read for the
-- first time or by the next sweep, after their commit: none comes before a position that was read. n grows with each.
CREATE TABLE tc_new_changes (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    n          integer NOT NULL,
    id         text NOT NULL,
    kind       text NOT NULL,
    entity_id  text NOT NULL,
    action     text NOT NULL,
    username   text, -- NULL: the service itself
    before     text, -- JSON
    after      text, -- JSON
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, n, id)
) STRICT, WITHOUT ROWID;

-- A second change at a position gets another one.
INSERT INTO tc_new_changes (tenant_id, n, id, kind, entity_id, action, username, before, after, created_at)
SELECT tenant_id, n, id, kind, entity_id, action, username, before, after, created_at FROM tc_changes c
WHERE position IS NULL OR EXISTS (SELECT 1 FROM tc_changes o WHERE o.tenant_id = c.tenant_id AND o.position = c.position AND o.id < c.id);

DROP INDEX tc_changes_new;
CREATE TABLE tc_changes_new (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    position   integer NOT NULL,
    kind       text NOT NULL,
    entity_id  text NOT NULL,
    action     text NOT NULL,
    username   text, -- NULL: the service itself
    before     text, -- JSON
    after      text, -- JSON
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, position)
) STRICT;
INSERT INTO tc_changes_new (tenant_id, position, kind, entity_id, action, username, before, after, created_at)
SELECT tenant_id, position, kind, entity_id, action, username, before, after, created_at FROM tc_changes c
WHERE NOT EXISTS (SELECT 1 FROM tc_new_changes w WHERE w.tenant_id = c.tenant_id AND w.n = c.n AND w.id = c.id);
DROP TABLE tc_changes;
ALTER TABLE tc_changes_new RENAME TO tc_changes;
CREATE INDEX tc_changes_old ON tc_changes (created_at, tenant_id);
CREATE INDEX tc_changes_user ON tc_changes (tenant_id, username);
CREATE INDEX tc_changes_people ON tc_changes (tenant_id, kind, entity_id) WHERE kind = 'user' OR kind = 'member';
