-- How many bytes the data of a bundle's entries has, kept as the totals of lists are.
CREATE FUNCTION tc_total_bundle_data() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO tc_totals AS t SELECT tenant_id, 'bundle_data' AS list, bundle_id AS part, pg_backend_pid(), sum(octet_length(data)) FROM now GROUP BY 1, 3
            ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n;
    ELSIF TG_OP = 'DELETE' THEN -- of a tenant that is deleted nothing is kept
        INSERT INTO tc_totals AS t SELECT tenant_id, 'bundle_data' AS list, bundle_id AS part, pg_backend_pid(), -sum(octet_length(data)) FROM was
            WHERE EXISTS (SELECT 1 FROM tc_tenants e WHERE e.tenant_id = was.tenant_id) GROUP BY 1, 3
            ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n;
    ELSE
        INSERT INTO tc_totals AS t SELECT tenant_id, 'bundle_data' AS list, bundle_id AS part, pg_backend_pid(), sum(bytes)
            FROM (SELECT tenant_id, bundle_id, octet_length(data) AS bytes FROM now UNION ALL SELECT tenant_id, bundle_id, -octet_length(data) FROM was) AS moved
            GROUP BY 1, 3 HAVING sum(bytes) <> 0
            ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER tc_total_bundle_data_insert AFTER INSERT ON tc_bundle_entries REFERENCING NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION tc_total_bundle_data();
CREATE TRIGGER tc_total_bundle_data_delete AFTER DELETE ON tc_bundle_entries REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION tc_total_bundle_data();
CREATE TRIGGER tc_total_bundle_data_update AFTER UPDATE ON tc_bundle_entries REFERENCING OLD TABLE AS was NEW TABLE AS now
    FOR EACH STATEMENT EXECUTE FUNCTION tc_total_bundle_data();
ALTER TABLE tc_bundle_entries NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
ALTER TABLE tc_totals NO FORCE ROW LEVEL SECURITY;
INSERT INTO tc_totals SELECT tenant_id, 'bundle_data', bundle_id, 0, sum(octet_length(data)) FROM tc_bundle_entries GROUP BY tenant_id, bundle_id;
