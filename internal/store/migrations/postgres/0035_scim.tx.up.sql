-- What a provider of identities that keeps the users of a domain by SCIM knows them by. gone: it has deleted the user.
CREATE TABLE tc_scim_users (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    username    text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    external_id text COLLATE "C",
    gone        boolean NOT NULL,
    changed_at  timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, username),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE UNIQUE INDEX tc_scim_users_id ON tc_scim_users (tenant_id, id);
CREATE INDEX tc_scim_users_external ON tc_scim_users (tenant_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX tc_users_domain_folded ON tc_users (tenant_id, domain, folded);
