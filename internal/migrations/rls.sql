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
END $$;
