-- The sessions that began with one at a provider of single sign-on, where their users log out, too.
CREATE TABLE tc_provider_sessions (
    tenant_id   text NOT NULL,
    session_id  text NOT NULL,
    domain_id   text NOT NULL,
    subject     text NOT NULL, -- hash of the provider's name of the person
    provider_id text NOT NULL, -- hash of the provider's id of its session, '' for none
    memory      text,          -- sealed
    PRIMARY KEY (tenant_id, session_id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES tc_sessions ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_provider_sessions_subject ON tc_provider_sessions (tenant_id, domain_id, subject);
CREATE INDEX tc_provider_sessions_provider ON tc_provider_sessions (tenant_id, domain_id, provider_id);
