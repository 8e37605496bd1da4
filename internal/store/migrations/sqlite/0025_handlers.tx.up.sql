-- What apps run on the server: the routes of each, the sources that they were built from, and the programs, which the apps of a tenant share.
CREATE TABLE tc_handler_deployments (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id     text NOT NULL,
    sources    blob NOT NULL, -- gzip of a JSON object with the base64 of each file
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, app_id)
) STRICT;

CREATE TABLE tc_handler_routes (
    tenant_id text NOT NULL,
    app_id    text NOT NULL,
    area      text NOT NULL,
    path      text NOT NULL,
    file      text NOT NULL,
    methods   text NOT NULL, -- a JSON array
    config    text NOT NULL, -- a JSON object
    hash      text NOT NULL,
    PRIMARY KEY (tenant_id, app_id, area, path),
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_handler_deployments ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_handler_routes_hash ON tc_handler_routes (tenant_id, hash);

CREATE TABLE tc_handler_programs (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    hash      text NOT NULL,
    engine    text NOT NULL,
    about     text NOT NULL, -- a JSON object
    code      blob NOT NULL,
    map       blob NOT NULL,
    used_at   text NOT NULL,
    PRIMARY KEY (tenant_id, hash, engine)
) STRICT;
CREATE INDEX tc_handler_programs_used ON tc_handler_programs (tenant_id, used_at);

CREATE TABLE tc_handler_calls (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id       text NOT NULL,
    day          text NOT NULL, -- in UTC, such as 2026-11-20
    area         text NOT NULL, -- server, or api for calls that the manifest allows
    method       text NOT NULL,
    path         text NOT NULL, -- the pattern of the route, or of the rule of the manifest
    n            integer NOT NULL,
    failed       integer NOT NULL,
    milliseconds integer NOT NULL,
    PRIMARY KEY (tenant_id, app_id, day, area, method, path)
) STRICT;
CREATE INDEX tc_handler_calls_day ON tc_handler_calls (tenant_id, day);
