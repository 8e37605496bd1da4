-- The work that goes on behind the answers of requests, and when it is to begin. The queue looks for what is due over all tenants at once, so
-- two indexes do not begin with the tenant.
CREATE TABLE tc_jobs (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    key        text COLLATE "C",
    payload    text NOT NULL, -- JSON
    state      text COLLATE "C" NOT NULL, -- ready, waiting, running or dead
    tries      integer NOT NULL,
    error      text,
    node       text,
    lease      text COLLATE "C",
    due_at     timestamptz(6) NOT NULL,
    wake_at    timestamptz(6), -- of waiting and running ones: when they are ready (again)
    created_at timestamptz(6) NOT NULL,
    ended_at   timestamptz(6),
    PRIMARY KEY (tenant_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
CREATE INDEX tc_jobs_ready ON tc_jobs (tenant_id, kind, due_at, id) WHERE state = 'ready';
CREATE UNIQUE INDEX tc_jobs_key ON tc_jobs (tenant_id, kind, key) WHERE key IS NOT NULL AND state <> 'dead';
CREATE INDEX tc_jobs_dead ON tc_jobs (tenant_id, ended_at, id) WHERE state = 'dead';
CREATE INDEX tc_jobs_wake ON tc_jobs (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE tc_job_schedules (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    kind      text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    cron      text NOT NULL,
    zone      text NOT NULL,
    payload   text NOT NULL, -- JSON
    next_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, kind, key)
);
CREATE INDEX tc_job_schedules_next ON tc_job_schedules (next_at);
