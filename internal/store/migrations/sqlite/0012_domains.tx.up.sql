CREATE TABLE tc_domains (
    tenant_id   text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id          text NOT NULL,
    name        text,
    label       text NOT NULL,
    search      text NOT NULL,
    description text,
    type        text NOT NULL,
    config      text,
    secrets     text,
    scanned_at  text,
    created_at  text NOT NULL,
    updated_at  text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_domains_label ON tc_domains (tenant_id, label, id);
CREATE INDEX tc_domains_created ON tc_domains (tenant_id, created_at, id);
CREATE INDEX tc_domains_updated ON tc_domains (tenant_id, updated_at, id);

-- The logins at a provider that were ended, so that none is ended twice.
CREATE TABLE tc_domain_logins (
    tenant_id  text NOT NULL,
    id         text NOT NULL,
    domain_id  text NOT NULL,
    expires_at text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, domain_id) REFERENCES tc_domains ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_domain_logins_domain ON tc_domain_logins (tenant_id, domain_id);
CREATE INDEX tc_domain_logins_expires ON tc_domain_logins (tenant_id, expires_at);

CREATE TABLE tc_domain_scans (
    tenant_id   text NOT NULL,
    domain_id   text NOT NULL,
    id          text NOT NULL,
    phase       text NOT NULL,
    users       integer NOT NULL,
    groups      integer NOT NULL,
    written     integer NOT NULL,
    total       integer NOT NULL,
    dry_run     integer NOT NULL,
    error       text NOT NULL,
    started_at  text NOT NULL,
    heard_at    text NOT NULL,
    finished_at text,
    PRIMARY KEY (tenant_id, domain_id),
    FOREIGN KEY (tenant_id, domain_id) REFERENCES tc_domains ON DELETE CASCADE
) STRICT;

CREATE TRIGGER tc_tenants_domain_insert AFTER INSERT ON tc_tenants BEGIN
    INSERT INTO tc_domains (tenant_id, id, name, label, search, type, created_at, updated_at)
        VALUES (NEW.tenant_id, 'local', 'Local', 'local', 'local', 'local', NEW.created_at, NEW.created_at);
END;
INSERT INTO tc_domains (tenant_id, id, name, label, search, type, created_at, updated_at)
    SELECT tenant_id, 'local', 'Local', 'local', 'local', 'local', created_at, created_at FROM tc_tenants;
