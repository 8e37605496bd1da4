-- What apps run on the server: the routes of each, the sources that they were built from, and the programs, which the apps of a tenant share.
CREATE TABLE tc_handler_deployments (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id     text COLLATE "C" NOT NULL,
    sources    bytea NOT NULL, -- gzip of a JSON object with the base64 of each file
    created_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, app_id)
);

CREATE TABLE tc_handler_routes (
    tenant_id text COLLATE "C" NOT NULL,
    app_id    text COLLATE "C" NOT NULL,
    area      text COLLATE "C" NOT NULL,
    path      text COLLATE "C" NOT NULL,
    file      text NOT NULL,
    methods   text NOT NULL, -- a JSON array
    config    text NOT NULL, -- a JSON object
    hash      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, app_id, area, path),
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_handler_deployments ON DELETE CASCADE
);
CREATE INDEX tc_handler_routes_hash ON tc_handler_routes (tenant_id, hash);

CREATE TABLE tc_handler_programs (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    hash      text COLLATE "C" NOT NULL,
    engine    text COLLATE "C" NOT NULL,
    about     text NOT NULL, -- a JSON object
    code      bytea NOT NULL,
    map       bytea NOT NULL,
    used_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, hash, engine)
);
CREATE INDEX tc_handler_programs_used ON tc_handler_programs (tenant_id, used_at);

CREATE TABLE tc_handler_calls (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    app_id       text COLLATE "C" NOT NULL,
    day          text COLLATE "C" NOT NULL, -- in UTC, such as 2026-11-20
    area         text COLLATE "C" NOT NULL, -- server, or api for calls that the manifest allows
    method       text COLLATE "C" NOT NULL,
    path         text COLLATE "C" NOT NULL, -- the pattern of the route, or of the rule of the manifest
    n            bigint NOT NULL,
    failed       bigint NOT NULL,
    milliseconds bigint NOT NULL,
    PRIMARY KEY (tenant_id, app_id, day, area, method, path)
);
CREATE INDEX tc_handler_calls_day ON tc_handler_calls (tenant_id, day);
