-- The calls of language models that wait for a person, while a stream waits for the decision, perhaps that of another server.
CREATE TABLE tc_confirmations (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id           text NOT NULL,
    assistant_id text NOT NULL,
    asked        text NOT NULL, -- digest of who is asked
    decision     text NOT NULL,
    expires_at   text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_confirmations_asked ON tc_confirmations (tenant_id, asked, expires_at);
CREATE INDEX tc_confirmations_expires ON tc_confirmations (tenant_id, expires_at);
