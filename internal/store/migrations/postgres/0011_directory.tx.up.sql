-- What a scan of a directory notes: that it, and nobody else, has disabled a user, and that a team's group is gone.
ALTER TABLE tc_users ADD COLUMN directory_disabled boolean NOT NULL DEFAULT false;
ALTER TABLE tc_teams ADD COLUMN directory_gone boolean NOT NULL DEFAULT false;

-- A person who is renamed in the directory is renamed here, so what refers to a username follows it.
ALTER TABLE tc_memberships DROP CONSTRAINT tc_memberships_tenant_id_username_fkey,
    ADD FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE tc_feed DROP CONSTRAINT tc_feed_tenant_id_username_fkey,
    ADD FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE tc_notifications DROP CONSTRAINT tc_notifications_tenant_id_username_fkey,
    ADD FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE;
