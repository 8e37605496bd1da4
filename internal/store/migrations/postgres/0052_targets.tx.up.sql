-- The delete of a tenant finds those that have had deploys from it, whatever the number of tenants.
CREATE INDEX tc_deployments_source ON tc_deployments (source_tenant, tenant_id);
