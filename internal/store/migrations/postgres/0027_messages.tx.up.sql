-- What handlers of apps emit and send, until a queue has carried it out, and for a while after that.
CREATE TABLE tc_events (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    app_id     text COLLATE "C" NOT NULL,
    name       text NOT NULL,
    search     text COLLATE "C" NOT NULL,
    payload    text NOT NULL, -- JSON
    user_id    text COLLATE "C",
    size       bigint NOT NULL,
    state      text COLLATE "C" NOT NULL,
    attempts   integer NOT NULL,
    error      text,
    created_at timestamptz(6) NOT NULL,
    updated_at timestamptz(6) NOT NULL,
    ended_at   timestamptz(6),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_events_app ON tc_events (tenant_id, app_id, created_at, id);
CREATE INDEX tc_events_waiting ON tc_events (tenant_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tc_events_ended ON tc_events (tenant_id, app_id, ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE tc_messages (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    app_id     text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    recipient  text COLLATE "C" NOT NULL,
    search     text COLLATE "C" NOT NULL,
    user_id    text COLLATE "C",
    title      text NOT NULL,
    body       text,
    html       text,
    sender     text,
    path       text,
    data       text, -- JSON
    size       bigint NOT NULL,
    state      text COLLATE "C" NOT NULL,
    attempts   integer NOT NULL,
    error      text,
    created_at timestamptz(6) NOT NULL,
    updated_at timestamptz(6) NOT NULL,
    ended_at   timestamptz(6),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_messages_app ON tc_messages (tenant_id, app_id, created_at, id);
CREATE INDEX tc_messages_waiting ON tc_messages (tenant_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tc_messages_ended ON tc_messages (tenant_id, app_id, ended_at, id) WHERE ended_at IS NOT NULL;

-- Apps notify users, too. Such a notification is of no comment, and leads to a path in its app.
ALTER TABLE tc_notifications ADD COLUMN path text;
CREATE INDEX tc_notifications_entity ON tc_notifications (tenant_id, kind, entity_id) WHERE comment_id IS NULL;
