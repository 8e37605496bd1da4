-- What handlers of apps emit and send, until a queue has carried it out, and for a while after that.
CREATE TABLE tc_events (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    app_id     text NOT NULL,
    name       text NOT NULL,
    search     text NOT NULL,
    payload    text NOT NULL, -- JSON
    user_id    text,
    size       integer NOT NULL,
    state      text NOT NULL,
    attempts   integer NOT NULL,
    error      text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    ended_at   text,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_events_app ON tc_events (tenant_id, app_id, created_at, id);
CREATE INDEX tc_events_waiting ON tc_events (tenant_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tc_events_ended ON tc_events (tenant_id, app_id, ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE tc_messages (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    app_id     text NOT NULL,
    type       text NOT NULL,
    recipient  text NOT NULL,
    search     text NOT NULL,
    user_id    text,
    title      text NOT NULL,
    body       text,
    html       text,
    sender     text,
    path       text,
    data       text, -- JSON
    size       integer NOT NULL,
    state      text NOT NULL,
    attempts   integer NOT NULL,
    error      text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    ended_at   text,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_messages_app ON tc_messages (tenant_id, app_id, created_at, id);
CREATE INDEX tc_messages_waiting ON tc_messages (tenant_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tc_messages_ended ON tc_messages (tenant_id, app_id, ended_at, id) WHERE ended_at IS NOT NULL;

-- Apps notify users, too. Such a notification is of no comment, and leads to a path in its app.
ALTER TABLE tc_notifications ADD COLUMN path text;
CREATE INDEX tc_notifications_entity ON tc_notifications (tenant_id, kind, entity_id) WHERE comment_id IS NULL;
