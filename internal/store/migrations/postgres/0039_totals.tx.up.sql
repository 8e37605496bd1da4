-- How many rows the lists have, so that no page counts them. Triggers keep a list's number, whoever writes its rows: it is the sum of the slots of the
-- list's part. A transaction writes the slot of its server process, so that none waits for another one; slots other than 0 are added to slot 0 in
-- the background.
CREATE TABLE tc_totals (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    list      text COLLATE "C" NOT NULL,
    part      text COLLATE "C" NOT NULL, -- such as the kind, or '' for a list of all rows
    slot      integer NOT NULL,
    n         bigint NOT NULL,
    PRIMARY KEY (tenant_id, list, part, slot)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX tc_totals_slots ON tc_totals (tenant_id, list, part) WHERE slot <> 0;

-- tc_keep_total counts the rows of a table for which a condition holds as a list with a part for each value of an expression, now and from now on. moves
-- tells that an UPDATE changes what either says of a row.
CREATE FUNCTION tc_keep_total(list text, tbl text, part text, condition text, moves boolean) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    rows text := format('SELECT tenant_id, %L AS list, %s AS part, pg_backend_pid(), ', list, part);
    add  text := 'INSERT INTO tc_totals AS t ';
    up   text := ' ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = t.n + excluded.n;';
BEGIN
    EXECUTE format($f$CREATE FUNCTION tc_total_%s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        %s
    ELSIF TG_OP = 'DELETE' THEN -- of a tenant that is deleted nothing is kept
        %s
    ELSE
        %s
    END IF;
    RETURN NULL;
END $$$f$, list,
        add || rows || 'count(*) FROM now WHERE ' || condition || ' GROUP BY 1, 3' || up,
        add || rows || '-count(*) FROM was WHERE ' || condition || ' AND EXISTS (SELECT 1 FROM tc_tenants e WHERE e.tenant_id = was.tenant_id) GROUP BY 1, 3' || up,
        CASE WHEN moves THEN add || rows || 'sum(sign) FROM (SELECT 1 AS sign, now.* FROM now UNION ALL SELECT -1, was.* FROM was) AS moved WHERE '
            || condition || ' GROUP BY 1, 3 HAVING sum(sign) <> 0' || up ELSE 'NULL;' END);
    EXECUTE format('CREATE TRIGGER tc_total_%s_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION tc_total_%1$s()', list, tbl);
    EXECUTE format('CREATE TRIGGER tc_total_%s_delete AFTER DELETE ON %s REFERENCING OLD TABLE AS was FOR EACH STATEMENT EXECUTE FUNCTION tc_total_%1$s()', list, tbl);
    IF moves THEN
        EXECUTE format('CREATE TRIGGER tc_total_%s_update AFTER UPDATE ON %s REFERENCING OLD TABLE AS was NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION tc_total_%1$s()',
            list, tbl);
    END IF;
    EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', tbl); -- so that its owner sees all rows; Run forces it again where it is on
    EXECUTE add || replace(rows, 'pg_backend_pid()', '0') || 'count(*) FROM ' || tbl || ' WHERE ' || condition || ' GROUP BY 1, 3';
END $body$;

SELECT tc_keep_total('ai_instructions', 'tc_ai_instructions', '''''', 'true', false);
SELECT tc_keep_total('bundles', 'tc_bundles', '''''', 'true', false);
SELECT tc_keep_total('bundle_entries', 'tc_bundle_entries', 'bundle_id', 'true', false);
SELECT tc_keep_total('colors', 'tc_colors', '''''', 'true', false);
SELECT tc_keep_total('domains', 'tc_domains', '''''', 'true', false);
SELECT tc_keep_total('teams', 'tc_teams', '''''', 'true', false);
SELECT tc_keep_total('users', 'tc_users', '''''', 'true', false);
SELECT tc_keep_total('apps', 'tc_apps', '''''', 'editing_id IS NULL AND deleted_at IS NULL', true);
SELECT tc_keep_total('owned_apps', 'tc_apps', 'owner_id', 'editing_id IS NULL AND deleted_at IS NULL', true);
SELECT tc_keep_total('assistants', 'tc_assistants', '''''', 'editing_id IS NULL', true);
SELECT tc_keep_total('owned_assistants', 'tc_assistants', 'owner_id', 'editing_id IS NULL', true);
SELECT tc_keep_total('entities', 'tc_entities', 'kind', 'editing_id IS NULL', true);
SELECT tc_keep_total('library_files', 'tc_library_files', 'kind || ''/'' || library_id', 'true', true);
SELECT tc_keep_total('members', 'tc_memberships', 'team_id', 'true', true);
SELECT tc_keep_total('memberships', 'tc_memberships', 'username', 'true', true);
SELECT tc_keep_total('activities', 'tc_activities', '''''', 'true', false);
SELECT tc_keep_total('entity_activities', 'tc_activities', 'kind || ''/'' || entity_id', 'true', true);
SELECT tc_keep_total('feed', 'tc_feed', 'username', 'true', true);
SELECT tc_keep_total('notifications', 'tc_notifications', 'username', 'true', true);
SELECT tc_keep_total('unread_notifications', 'tc_notifications', 'username', 'read_at IS NULL', true);
