DO $$
DECLARE
    t text;
BEGIN
    FOR t IN SELECT c.table_name FROM information_schema.columns c
             WHERE c.table_schema = current_schema() AND c.column_name = 'tenant_id' AND c.table_name LIKE 'tc\_%'
               AND c.table_name <> 'tc_tenants'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('DROP POLICY IF EXISTS tc_tenant ON %I', t);
        EXECUTE format('CREATE POLICY tc_tenant ON %I USING (tenant_id = current_setting(''tenantcontent.tenant'', true))', t);
    END LOOP;
    -- The queue looks for what is due over all tenants, slots of totals are added up for all, and indexes of searches are kept for all. * is the id of none.
    FOREACH t IN ARRAY ARRAY['tc_jobs', 'tc_job_schedules', 'tc_totals', 'tc_search_lists', 'tc_search_noted', 'tc_search_segments']
    LOOP
        IF to_regclass(t) IS NOT NULL THEN
            EXECUTE format('DROP POLICY IF EXISTS tc_queue ON %I', t);
            EXECUTE format('CREATE POLICY tc_queue ON %I USING (current_setting(''tenantcontent.tenant'', true) = ''*'')', t);
        END IF;
    END LOOP;
    -- The delete of a tenant looks for those that it has deployed into.
    IF to_regclass('tc_deployments') IS NOT NULL THEN
        DROP POLICY IF EXISTS tc_targets ON tc_deployments;
        CREATE POLICY tc_targets ON tc_deployments FOR SELECT USING (current_setting('tenantcontent.tenant', true) = '*');
    END IF;
    -- A sweep looks for what is due over all tenants, and removes it as each of them.
    FOREACH t IN ARRAY ARRAY['tc_activities', 'tc_agent_runs', 'tc_blobs', 'tc_changes', 'tc_confirmations', 'tc_domain_logins', 'tc_downloads', 'tc_events',
        'tc_handler_calls', 'tc_handler_programs', 'tc_library_released', 'tc_login_networks', 'tc_messages', 'tc_new_changes', 'tc_notifications', 'tc_removals', 'tc_sessions',
        'tc_uploads', 'tc_webhook_days', 'tc_webhook_invocations', 'tc_webhook_requests', 'tc_workspaces']
    LOOP
        IF to_regclass(t) IS NOT NULL THEN
            EXECUTE format('DROP POLICY IF EXISTS tc_due ON %I', t);
            EXECUTE format('CREATE POLICY tc_due ON %I FOR SELECT USING (current_setting(''tenantcontent.tenant'', true) = ''*'')', t);
        END IF;
    END LOOP;
END $$;
