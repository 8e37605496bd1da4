-- How many comments on top an entity has; its row is locked by whoever adds or removes comments of the entity.
CREATE TABLE tc_comment_threads (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    kind      text NOT NULL,
    entity_id text NOT NULL,
    total     integer NOT NULL,
    PRIMARY KEY (tenant_id, kind, entity_id)
) STRICT;

-- No cascade from parent to reply: it would recurse as deep as a thread. user_id outlives its user.
CREATE TABLE tc_comments (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    kind       text NOT NULL,
    entity_id  text NOT NULL,
    parent_id  text,
    user_id    text NOT NULL,
    message    text NOT NULL,
    public     integer NOT NULL,
    mentions   text,
    replies    integer NOT NULL,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, parent_id) REFERENCES tc_comments
) STRICT;
CREATE INDEX tc_comments_replies ON tc_comments (tenant_id, parent_id, created_at, id);
CREATE INDEX tc_comments_entity ON tc_comments (tenant_id, kind, entity_id, created_at, id) WHERE parent_id IS NULL;

CREATE TABLE tc_activities (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    type       text NOT NULL,
    kind       text NOT NULL,
    entity_id  text NOT NULL,
    comment_id text,
    user_id    text NOT NULL,
    excerpt    text NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, comment_id) REFERENCES tc_comments ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_activities_created ON tc_activities (tenant_id, created_at, id);
CREATE INDEX tc_activities_entity ON tc_activities (tenant_id, kind, entity_id, created_at, id);
CREATE INDEX tc_activities_comment ON tc_activities (tenant_id, comment_id);

-- Whom an activity concerns.
CREATE TABLE tc_feed (
    tenant_id   text NOT NULL,
    activity_id text NOT NULL,
    username    text NOT NULL,
    created_at  text NOT NULL,
    PRIMARY KEY (tenant_id, activity_id, username),
    FOREIGN KEY (tenant_id, activity_id) REFERENCES tc_activities ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_feed_user ON tc_feed (tenant_id, username, created_at, activity_id);

CREATE TABLE tc_notifications (
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
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, comment_id) REFERENCES tc_comments ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_notifications_user ON tc_notifications (tenant_id, username, created_at, id);
CREATE INDEX tc_notifications_state ON tc_notifications (tenant_id, state, created_at, id);
CREATE UNIQUE INDEX tc_notifications_comment ON tc_notifications (tenant_id, comment_id, username, type);
