-- A start looks for one tenant of each secret key, whatever the number of tenants.
CREATE INDEX tc_tenants_key_check ON tc_tenants (key_check, tenant_id) WHERE hidden IS NULL;
