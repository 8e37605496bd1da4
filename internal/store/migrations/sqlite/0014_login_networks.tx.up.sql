-- The networks that users log in from, or fail to: failures are counted, and users locked, for each network apart.
CREATE TABLE tc_login_networks (
    tenant_id    text NOT NULL,
    username     text NOT NULL,
    network      text NOT NULL,
    attempts     integer NOT NULL,
    failed_at    text,
    locked_at    text,
    logged_in_at text,
    expires_at   text NOT NULL,
    PRIMARY KEY (tenant_id, username, network),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
) STRICT;
CREATE INDEX tc_login_networks_expires ON tc_login_networks (tenant_id, expires_at);

-- When the last failures of a user were, from all networks: microseconds since 1970, parted by commas.
ALTER TABLE tc_users ADD COLUMN recent_failures text;
