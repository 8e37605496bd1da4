-- A start looks for one tenant of each secret key, whatever the number of tenants.
ALTER TABLE tc_tenants ALTER COLUMN key_check TYPE text COLLATE "C";
CREATE INDEX tc_tenants_key_check ON tc_tenants (key_check, tenant_id) WHERE hidden IS NULL;
