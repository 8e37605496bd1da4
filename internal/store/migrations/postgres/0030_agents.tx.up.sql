-- The agents that apps have deployed, their runs, and what happened in each.
CREATE TABLE tc_agents (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    definition text NOT NULL, -- JSON
    overrides  text NOT NULL, -- JSON
    created_at timestamptz(6) NOT NULL,
    updated_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, app_id, name)
);

CREATE TABLE tc_agent_runs (
    tenant_id     text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id            text COLLATE "C" NOT NULL,
    app_id        text COLLATE "C" NOT NULL,
    agent         text COLLATE "C" NOT NULL,
    started_by    text COLLATE "C" NOT NULL, -- event, cron, manual or failure
    event_id      text COLLATE "C",
    run_id        text COLLATE "C",
    user_id       text COLLATE "C",
    input         text NOT NULL, -- JSON
    depth         integer NOT NULL,
    model         text NOT NULL,
    steps         integer NOT NULL,
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    size          bigint NOT NULL,
    lease         text COLLATE "C" NOT NULL,
    state         text COLLATE "C" NOT NULL,
    attempts      integer NOT NULL,
    error         text,
    result        text,
    created_at    timestamptz(6) NOT NULL,
    updated_at    timestamptz(6) NOT NULL,
    started_at    timestamptz(6),
    ended_at      timestamptz(6),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_agent_runs_agent ON tc_agent_runs (tenant_id, app_id, agent, created_at, id);
CREATE INDEX tc_agent_runs_waiting ON tc_agent_runs (tenant_id, app_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tc_agent_runs_ended ON tc_agent_runs (tenant_id, app_id, ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE tc_agent_steps (
    tenant_id     text COLLATE "C" NOT NULL,
    run_id        text COLLATE "C" NOT NULL,
    n             integer NOT NULL,
    kind          text COLLATE "C" NOT NULL, -- answer or tool
    content       text NOT NULL,
    calls         text NOT NULL, -- JSON
    input_tokens  bigint NOT NULL,
    output_tokens bigint NOT NULL,
    call_id       text NOT NULL,
    tool          text NOT NULL,
    arguments     text NOT NULL,
    result        text NOT NULL,
    failed        boolean NOT NULL,
    log           text NOT NULL,
    started_at    timestamptz(6) NOT NULL,
    ended_at      timestamptz(6),
    PRIMARY KEY (tenant_id, run_id, n),
    FOREIGN KEY (tenant_id, run_id) REFERENCES tc_agent_runs ON DELETE CASCADE
);

-- How many agents and events have started each other until an event.
ALTER TABLE tc_events ADD COLUMN depth integer NOT NULL DEFAULT 0;
