-- What a scan of a directory notes: that it, and nobody else, has disabled a user, and that a team's group is gone.
ALTER TABLE tc_users ADD COLUMN directory_disabled integer NOT NULL DEFAULT 0;
ALTER TABLE tc_teams ADD COLUMN directory_gone integer NOT NULL DEFAULT 0;

-- A person who is renamed in the directory is renamed here, so what refers to a username follows it. SQLite changes no
-- foreign key: the tables are made again.
CREATE TABLE tc_memberships_new (
    tenant_id  text NOT NULL,
    team_id    text NOT NULL,
    username   text NOT NULL,
    role       integer NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, team_id, username),
    FOREIGN KEY (tenant_id, team_id) REFERENCES tc_teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
) STRICT;
INSERT INTO tc_memberships_new SELECT tenant_id, team_id, username, role, created_at FROM tc_memberships;
DROP TABLE tc_memberships;
ALTER TABLE tc_memberships_new RENAME TO tc_memberships;
CREATE INDEX tc_memberships_user ON tc_memberships (tenant_id, username, team_id);

CREATE TABLE tc_feed_new (
    tenant_id   text NOT NULL,
    activity_id text NOT NULL,
    username    text NOT NULL,
    created_at  text NOT NULL,
    PRIMARY KEY (tenant_id, activity_id, username),
    FOREIGN KEY (tenant_id, activity_id) REFERENCES tc_activities ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
) STRICT;
INSERT INTO tc_feed_new SELECT tenant_id, activity_id, username, created_at FROM tc_feed;
DROP TABLE tc_feed;
ALTER TABLE tc_feed_new RENAME TO tc_feed;
CREATE INDEX tc_feed_user ON tc_feed (tenant_id, username, created_at, activity_id);

CREATE TABLE tc_notifications_new (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    username   text NOT NULL,
    type       text NOT NULL,
    state      text NOT NULL,
    title      text NOT NULL,
    body       text NOT NULL,
    kind       text,
    entity_id  text,
    comment_id text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, comment_id) REFERENCES tc_comments ON DELETE CASCADE
) STRICT;
INSERT INTO tc_notifications_new SELECT tenant_id, id, username, type, state, title, body, kind, entity_id, comment_id, created_at, updated_at
    FROM tc_notifications;
DROP TABLE tc_notifications;
ALTER TABLE tc_notifications_new RENAME TO tc_notifications;
CREATE INDEX tc_notifications_user ON tc_notifications (tenant_id, username, created_at, id);
CREATE INDEX tc_notifications_state ON tc_notifications (tenant_id, state, created_at, id);
CREATE UNIQUE INDEX tc_notifications_comment ON tc_notifications (tenant_id, comment_id, username, type);
