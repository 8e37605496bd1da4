CREATE TABLE tc_sessions (
    tenant_id  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    username   text COLLATE "C" NOT NULL,
    created_at timestamptz(6) NOT NULL,
    expires_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX tc_sessions_user ON tc_sessions (tenant_id, username);
CREATE INDEX tc_sessions_expires ON tc_sessions (tenant_id, expires_at);

CREATE TABLE tc_tokens (
    tenant_id        text COLLATE "C" NOT NULL,
    id               text COLLATE "C" NOT NULL,
    type             text COLLATE "C" NOT NULL,
    username         text COLLATE "C" NOT NULL,
    secret_hash      text COLLATE "C" NOT NULL,
    read_only        boolean NOT NULL,
    notes            text,
    restriction      text,
    host             text,
    cidr             text,
    data             text,
    requests         bigint NOT NULL,
    blocked          bigint NOT NULL,
    last_accessed_at timestamptz(6),
    expires_at       timestamptz(6),
    created_at       timestamptz(6) NOT NULL,
    updated_at       timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX tc_tokens_user ON tc_tokens (tenant_id, username, created_at, id);
