-- How many bytes the files of each user have, as a list of tc_totals whose part is the user and whose number is a sum. It is in slot 0 alone: transactions
-- that add files of one user wait for each other, so that none passes a quota beside another one.
CREATE FUNCTION tc_keep_bytes(list text, tbl text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    add text := format('INSERT INTO tc_totals AS t SELECT tenant_id, %L, username, 0, ', list);
    up  text := ' GROUP BY 1, 3 HAVING sum(size) <> 0 ORDER BY 1, 3 ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n;';
BEGIN
    EXECUTE format($f$CREATE FUNCTION tc_total_%1$s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        %2$s
    ELSIF TG_OP = 'DELETE' THEN -- of a tenant that is deleted nothing is kept
        %3$s
    ELSE
        %4$s
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM tc_totals t USING was WHERE t.tenant_id = was.tenant_id AND t.list = '%1$s' AND t.part = was.username AND t.slot = 0 AND t.n = 0;
    END IF;
    RETURN NULL;
END $$$f$, list,
        add || 'sum(size) FROM now' || up,
        add || '-sum(size) FROM was WHERE EXISTS (SELECT 1 FROM tc_tenants e WHERE e.tenant_id = was.tenant_id)' || up,
        add || 'sum(size) FROM (SELECT tenant_id, username, size FROM now UNION ALL SELECT tenant_id, username, -size FROM was) AS moved' || up);
    EXECUTE format('CREATE TRIGGER tc_total_%s_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION tc_total_%1$s()', list, tbl);
    EXECUTE format('CREATE TRIGGER tc_total_%s_delete AFTER DELETE ON %s REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION tc_total_%1$s()', list, tbl);
    EXECUTE format('CREATE TRIGGER tc_total_%s_update AFTER UPDATE ON %s REFERENCING OLD TABLE AS was NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION tc_total_%1$s()', list, tbl);
    EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', tbl); -- so that its owner sees all rows; Run forces it again where it is on
    EXECUTE add || 'sum(size) FROM ' || tbl || ' GROUP BY 1, 3 HAVING sum(size) <> 0';
END $body$;
ALTER TABLE tc_totals NO FORCE ROW LEVEL SECURITY;
SELECT tc_keep_bytes('upload_bytes', 'tc_uploads');
SELECT tc_keep_bytes('download_bytes', 'tc_downloads');
DROP FUNCTION tc_keep_bytes;
