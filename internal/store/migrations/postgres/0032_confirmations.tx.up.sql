-- The calls of language models that wait for a person, while a stream waits for the decision, perhaps that of another server.
CREATE TABLE tc_confirmations (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id           text COLLATE "C" NOT NULL,
    assistant_id text COLLATE "C" NOT NULL,
    asked        text COLLATE "C" NOT NULL, -- digest of who is asked
    decision     text COLLATE "C" NOT NULL,
    expires_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_confirmations_asked ON tc_confirmations (tenant_id, asked, expires_at);
CREATE INDEX tc_confirmations_expires ON tc_confirmations (tenant_id, expires_at);
