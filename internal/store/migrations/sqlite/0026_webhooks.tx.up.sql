-- The calls of apps' webhooks, what they add up to by day, and the requests that are kept for a while.
CREATE TABLE tc_webhook_invocations (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id       text NOT NULL,
    id           text NOT NULL,
    method       text NOT NULL,
    path         text NOT NULL,
    started_at   text NOT NULL,
    duration     integer NOT NULL, -- microseconds
    status       integer NOT NULL,
    memory       integer NOT NULL, -- bytes
    error        text,
    logs         text NOT NULL,
    logs_dropped integer NOT NULL,
    replay_of    text,
    PRIMARY KEY (tenant_id, app_id, id)
) STRICT;
CREATE INDEX tc_webhook_invocations_recent ON tc_webhook_invocations (tenant_id, app_id, started_at, id);
CREATE INDEX tc_webhook_invocations_route ON tc_webhook_invocations (tenant_id, app_id, method, path, started_at, id);
CREATE INDEX tc_webhook_invocations_started ON tc_webhook_invocations (tenant_id, started_at);

CREATE TABLE tc_webhook_days (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id    text NOT NULL,
    day       text NOT NULL, -- in UTC, such as 2026-11-20
    method    text NOT NULL,
    path      text NOT NULL, -- empty for calls that no route has
    calls     integer NOT NULL,
    errors    integer NOT NULL,
    duration  integer NOT NULL, -- microseconds of all calls
    PRIMARY KEY (tenant_id, app_id, day, method, path)
) STRICT;
CREATE INDEX tc_webhook_days_day ON tc_webhook_days (tenant_id, day);

CREATE TABLE tc_webhook_requests (
    tenant_id   text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id      text NOT NULL,
    id          text NOT NULL, -- of the invocation
    received_at text NOT NULL,
    size        integer NOT NULL,
    key_sealed  text NOT NULL, -- the key that request is encrypted with
    request     blob NOT NULL,
    PRIMARY KEY (tenant_id, app_id, id)
) STRICT;
CREATE INDEX tc_webhook_requests_received ON tc_webhook_requests (tenant_id, app_id, received_at, id, size);
CREATE INDEX tc_webhook_requests_old ON tc_webhook_requests (tenant_id, received_at);
