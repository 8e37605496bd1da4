-- The calls of apps' webhooks, what they add up to by day, and the requests that are kept for a while.
CREATE TABLE tc_webhook_invocations (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id       text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    method       text COLLATE "C" NOT NULL,
    path         text COLLATE "C" NOT NULL,
    started_at   timestamptz(6) NOT NULL,
    duration     bigint NOT NULL, -- microseconds
    status       integer NOT NULL,
    memory       bigint NOT NULL, -- bytes
    error        text COLLATE "C",
    logs         text COLLATE "C" NOT NULL,
    logs_dropped bigint NOT NULL,
    replay_of    text COLLATE "C",
    PRIMARY KEY (tenant_id, app_id, id)
);
CREATE INDEX tc_webhook_invocations_recent ON tc_webhook_invocations (tenant_id, app_id, started_at, id);
CREATE INDEX tc_webhook_invocations_route ON tc_webhook_invocations (tenant_id, app_id, method, path, started_at, id);
CREATE INDEX tc_webhook_invocations_started ON tc_webhook_invocations (tenant_id, started_at);

CREATE TABLE tc_webhook_days (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id    text COLLATE "C" NOT NULL,
    day       text COLLATE "C" NOT NULL, -- in UTC, such as 2026-11-20
    method    text COLLATE "C" NOT NULL,
    path      text COLLATE "C" NOT NULL, -- empty for calls that no route has
    calls     bigint NOT NULL,
    errors    bigint NOT NULL,
    duration  bigint NOT NULL, -- microseconds of all calls
    PRIMARY KEY (tenant_id, app_id, day, method, path)
);
CREATE INDEX tc_webhook_days_day ON tc_webhook_days (tenant_id, day);

CREATE TABLE tc_webhook_requests (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id      text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL, -- of the invocation
    received_at timestamptz(6) NOT NULL,
    size        bigint NOT NULL,
    key_sealed  text COLLATE "C" NOT NULL, -- the key that request is encrypted with
    request     bytea NOT NULL,
    PRIMARY KEY (tenant_id, app_id, id)
);
CREATE INDEX tc_webhook_requests_received ON tc_webhook_requests (tenant_id, app_id, received_at, id, size);
CREATE INDEX tc_webhook_requests_old ON tc_webhook_requests (tenant_id, received_at);
