-- The sessions that began with one at a provider of single sign-on, where their users log out, too.
CREATE TABLE tc_provider_sessions (
    tenant_id   text COLLATE "C" NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    domain_id   text COLLATE "C" NOT NULL,
    subject     text COLLATE "C" NOT NULL, -- hash of the provider's name of the person
    provider_id text COLLATE "C" NOT NULL, -- hash of the provider's id of its session, '' for none
    memory      text,                      -- sealed
    PRIMARY KEY (tenant_id, session_id),
    FOREIGN KEY (tenant_id, session_id) REFERENCES tc_sessions ON DELETE CASCADE
);
CREATE INDEX tc_provider_sessions_subject ON tc_provider_sessions (tenant_id, domain_id, subject);
CREATE INDEX tc_provider_sessions_provider ON tc_provider_sessions (tenant_id, domain_id, provider_id);
