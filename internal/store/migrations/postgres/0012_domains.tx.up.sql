CREATE TABLE tc_domains (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id          text COLLATE "C" NOT NULL,
    name        text,
    label       text COLLATE "C" NOT NULL,
    search      text COLLATE "C" NOT NULL,
    description text,
    type        text COLLATE "C" NOT NULL,
    config      text,
    secrets     text,
    scanned_at  timestamptz(6),
    created_at  timestamptz(6) NOT NULL,
    updated_at  timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_domains_label ON tc_domains (tenant_id, label, id);
CREATE INDEX tc_domains_created ON tc_domains (tenant_id, created_at, id);
CREATE INDEX tc_domains_updated ON tc_domains (tenant_id, updated_at, id);

-- The logins at a provider that were ended, so that none is ended twice.
CREATE TABLE tc_domain_logins (
    tenant_id  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    domain_id  text COLLATE "C" NOT NULL,
    expires_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, domain_id) REFERENCES tc_domains ON DELETE CASCADE
);
CREATE INDEX tc_domain_logins_domain ON tc_domain_logins (tenant_id, domain_id);
CREATE INDEX tc_domain_logins_expires ON tc_domain_logins (tenant_id, expires_at);

CREATE TABLE tc_domain_scans (
    tenant_id   text COLLATE "C" NOT NULL,
    domain_id   text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    phase       text COLLATE "C" NOT NULL,
    users       bigint NOT NULL,
    groups      bigint NOT NULL,
    written     bigint NOT NULL,
    total       bigint NOT NULL,
    dry_run     boolean NOT NULL,
    error       text NOT NULL,
    started_at  timestamptz(6) NOT NULL,
    heard_at    timestamptz(6) NOT NULL,
    finished_at timestamptz(6),
    PRIMARY KEY (tenant_id, domain_id),
    FOREIGN KEY (tenant_id, domain_id) REFERENCES tc_domains ON DELETE CASCADE
);

CREATE FUNCTION tc_tenants_domain() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tc_domains (tenant_id, id, name, label, search, type, created_at, updated_at)
        VALUES (NEW.tenant_id, 'local', 'Local', 'local', 'local', 'local', NEW.created_at, NEW.created_at);
    RETURN NEW;
END $$;
CREATE TRIGGER tc_tenants_domain AFTER INSERT ON tc_tenants
    FOR EACH ROW EXECUTE FUNCTION tc_tenants_domain();
INSERT INTO tc_domains (tenant_id, id, name, label, search, type, created_at, updated_at)
    SELECT tenant_id, 'local', 'Local', 'local', 'local', 'local', created_at, created_at FROM tc_tenants;
