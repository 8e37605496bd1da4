-- The agents that apps have deployed, their runs, and what happened in each.
CREATE TABLE tc_agents (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id     text NOT NULL,
    name       text NOT NULL,
    definition text NOT NULL, -- JSON
    overrides  text NOT NULL, -- JSON
    created_at text NOT NULL,
    updated_at text NOT NULL,
    PRIMARY KEY (tenant_id, app_id, name)
) STRICT;

CREATE TABLE tc_agent_runs (
    tenant_id     text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id            text NOT NULL,
    app_id        text NOT NULL,
    agent         text NOT NULL,
    started_by    text NOT NULL, -- event, cron, manual or failure
    event_id      text,
    run_id        text,
    user_id       text,
    input         text NOT NULL, -- JSON
    depth         integer NOT NULL,
    model         text NOT NULL,
    steps         integer NOT NULL,
    input_tokens  integer NOT NULL,
    output_tokens integer NOT NULL,
    size          integer NOT NULL,
    lease         text NOT NULL,
    state         text NOT NULL,
    attempts      integer NOT NULL,
    error         text,
    result        text,
    created_at    text NOT NULL,
    updated_at    text NOT NULL,
    started_at    text,
    ended_at      text,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_agent_runs_agent ON tc_agent_runs (tenant_id, app_id, agent, created_at, id);
CREATE INDEX tc_agent_runs_waiting ON tc_agent_runs (tenant_id, app_id, created_at, id) WHERE ended_at IS NULL;
CREATE INDEX tc_agent_runs_ended ON tc_agent_runs (tenant_id, app_id, ended_at, id) WHERE ended_at IS NOT NULL;

CREATE TABLE tc_agent_steps (
    tenant_id     text NOT NULL,
    run_id        text NOT NULL,
    n             integer NOT NULL,
    kind          text NOT NULL, -- answer or tool
    content       text NOT NULL,
    calls         text NOT NULL, -- JSON
    input_tokens  integer NOT NULL,
    output_tokens integer NOT NULL,
    call_id       text NOT NULL,
    tool          text NOT NULL,
    arguments     text NOT NULL,
    result        text NOT NULL,
    failed        integer NOT NULL,
    log           text NOT NULL,
    started_at    text NOT NULL,
    ended_at      text,
    PRIMARY KEY (tenant_id, run_id, n),
    FOREIGN KEY (tenant_id, run_id) REFERENCES tc_agent_runs ON DELETE CASCADE
) STRICT;

-- How many agents and events have started each other until an event.
ALTER TABLE tc_events ADD COLUMN depth integer NOT NULL DEFAULT 0;
