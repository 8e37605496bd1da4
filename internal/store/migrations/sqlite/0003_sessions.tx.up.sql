CREATE TABLE tc_sessions (
    tenant_id  text NOT NULL,
    id         text NOT NULL,
    username   text NOT NULL,
    created_at text NOT NULL,
    expires_at text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
) STRICT;
CREATE INDEX tc_sessions_user ON tc_sessions (tenant_id, username);
CREATE INDEX tc_sessions_expires ON tc_sessions (tenant_id, expires_at);

CREATE TABLE tc_tokens (
    tenant_id        text NOT NULL,
    id               text NOT NULL,
    type             text NOT NULL,
    username         text NOT NULL,
    secret_hash      text NOT NULL,
    read_only        integer NOT NULL,
    notes            text,
    restriction      text,
    host             text,
    cidr             text,
    data             text,
    requests         integer NOT NULL,
    blocked          integer NOT NULL,
    last_accessed_at text,
    expires_at       text,
    created_at       text NOT NULL,
    updated_at       text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
) STRICT;
CREATE INDEX tc_tokens_user ON tc_tokens (tenant_id, username, created_at, id);
