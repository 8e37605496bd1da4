-- The networks that users log in from, or fail to: failures are counted, and users locked, for each network apart.
CREATE TABLE tc_login_networks (
    tenant_id    text COLLATE "C" NOT NULL,
    username     text COLLATE "C" NOT NULL,
    network      text COLLATE "C" NOT NULL,
    attempts     integer NOT NULL,
    failed_at    timestamptz(6),
    locked_at    timestamptz(6),
    logged_in_at timestamptz(6),
    expires_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, username, network),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX tc_login_networks_expires ON tc_login_networks (tenant_id, expires_at);

-- When the last failures of a user were, from all networks: microseconds since 1970, parted by commas.
ALTER TABLE tc_users ADD COLUMN recent_failures text;
