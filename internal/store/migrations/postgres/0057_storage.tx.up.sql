-- How many bytes a tenant stores: the list storage of tc_totals, with a part each for files, records and workspaces, kept as the totals of lists are. A record
-- counts the texts that tenants choose the length of, and 256 bytes; small rows such as users and colors are not counted.
ALTER TABLE tc_tenants ADD COLUMN quota bigint; -- bytes; NULL: as many as the server allows
ALTER TABLE tc_tenants ADD COLUMN max_workspaces integer; -- NULL: as many as the server allows
ALTER TABLE tc_workspaces ADD COLUMN bytes bigint NOT NULL DEFAULT 0; -- as it was measured last

-- tc_keep_storage counts the bytes of a table's rows, by an expression over one of them, from now on.
CREATE FUNCTION tc_keep_storage(tbl text, kind text, bytes text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    add text := format('INSERT INTO tc_totals AS t SELECT tenant_id, ''storage'', %L, pg_backend_pid(), ', kind);
    up  text := ' ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n;';
    trg text := tbl || '_storage';
BEGIN
    EXECUTE format($f$CREATE FUNCTION %I() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        %s
    ELSIF TG_OP = 'DELETE' THEN -- of a tenant that is deleted nothing is kept
        %s
    ELSE
        %s
    END IF;
    RETURN NULL;
END $$$f$, trg,
        add || 'sum(' || bytes || ') FROM now GROUP BY 1' || up,
        add || '-sum(' || bytes || ') FROM was WHERE EXISTS (SELECT 1 FROM tc_tenants e WHERE e.tenant_id = was.tenant_id) GROUP BY 1' || up,
        add || 'sum(n) FROM (SELECT tenant_id, ' || bytes || ' AS n FROM now UNION ALL SELECT tenant_id, -(' || bytes || ') FROM was) AS moved GROUP BY 1 HAVING sum(n) <> 0' || up);
    EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %s REFERENCING NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION %I()', trg || '_insert', tbl, trg);
    EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %s REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION %I()', trg || '_delete', tbl, trg);
    EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %s REFERENCING OLD TABLE AS was NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION %I()', trg || '_update', tbl, trg);
    EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', tbl); -- so that its owner sees all rows; Run forces it again where it is on
END $body$;
ALTER TABLE tc_totals NO FORCE ROW LEVEL SECURITY;
SELECT tc_keep_storage('tc_blob_chunks', 'files', 'octet_length(bytes)');
SELECT tc_keep_storage('tc_workspaces', 'workspaces', 'bytes');
SELECT tc_keep_storage('tc_agent_runs', 'records', '256 + size');
SELECT tc_keep_storage('tc_agents', 'records', '256 + octet_length(definition) + octet_length(overrides)');
SELECT tc_keep_storage('tc_ai_instructions', 'records', '256 + octet_length(content)');
SELECT tc_keep_storage('tc_apps', 'records', '512 + octet_length(defn) + octet_length(settings) + coalesce(octet_length(env_sealed), 0)');
SELECT tc_keep_storage('tc_assistants', 'records', '512 + octet_length(instructions) + octet_length(data) + octet_length(skills)');
SELECT tc_keep_storage('tc_bundle_entries', 'records', '256 + octet_length(data)');
SELECT tc_keep_storage('tc_comments', 'records', '256 + octet_length(message)');
SELECT tc_keep_storage('tc_entities', 'records', '256 + octet_length(data) + coalesce(octet_length(description), 0)');
SELECT tc_keep_storage('tc_events', 'records', '256 + size');
SELECT tc_keep_storage('tc_handler_deployments', 'records', '256 + octet_length(sources)');
SELECT tc_keep_storage('tc_handler_programs', 'records', '256 + octet_length(code) + octet_length(map)');
SELECT tc_keep_storage('tc_messages', 'records', '256 + size');
SELECT tc_keep_storage('tc_webhook_invocations', 'records', '256 + octet_length(logs) + coalesce(octet_length(error), 0)');
SELECT tc_keep_storage('tc_webhook_requests', 'records', '256 + size');
DROP FUNCTION tc_keep_storage;

INSERT INTO tc_totals SELECT tenant_id, 'storage', 'files', 0, sum(octet_length(bytes)) FROM tc_blob_chunks GROUP BY tenant_id;
INSERT INTO tc_totals SELECT tenant_id, 'storage', 'records', 0, sum(n) FROM (
    SELECT tenant_id, 256 + size AS n FROM tc_agent_runs
    UNION ALL SELECT tenant_id, 256 + octet_length(definition) + octet_length(overrides) AS n FROM tc_agents
    UNION ALL SELECT tenant_id, 256 + octet_length(content) AS n FROM tc_ai_instructions
    UNION ALL SELECT tenant_id, 512 + octet_length(defn) + octet_length(settings) + coalesce(octet_length(env_sealed), 0) AS n FROM tc_apps
    UNION ALL SELECT tenant_id, 512 + octet_length(instructions) + octet_length(data) + octet_length(skills) AS n FROM tc_assistants
    UNION ALL SELECT tenant_id, 256 + octet_length(data) AS n FROM tc_bundle_entries
    UNION ALL SELECT tenant_id, 256 + octet_length(message) AS n FROM tc_comments
    UNION ALL SELECT tenant_id, 256 + octet_length(data) + coalesce(octet_length(description), 0) AS n FROM tc_entities
    UNION ALL SELECT tenant_id, 256 + size AS n FROM tc_events
    UNION ALL SELECT tenant_id, 256 + octet_length(sources) AS n FROM tc_handler_deployments
    UNION ALL SELECT tenant_id, 256 + octet_length(code) + octet_length(map) AS n FROM tc_handler_programs
    UNION ALL SELECT tenant_id, 256 + size AS n FROM tc_messages
    UNION ALL SELECT tenant_id, 256 + octet_length(logs) + coalesce(octet_length(error), 0) AS n FROM tc_webhook_invocations
    UNION ALL SELECT tenant_id, 256 + size AS n FROM tc_webhook_requests
) AS kept GROUP BY tenant_id;
