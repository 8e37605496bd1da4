-- Which rows of long lists have which trigrams (three characters in a row) in the text that q is compared with, so that a search reads few rows. The index
-- has all rows that a search finds, and perhaps more: those are compared anyway. A writer notes the rows whose text is new; they are added in the
-- background, as a segment of rows at a time.
CREATE TABLE tc_search_lists (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    list      text COLLATE "C" NOT NULL, -- with its part, as in tc_totals
    part      text COLLATE "C" NOT NULL,
    usable    boolean NOT NULL DEFAULT false, -- all rows are in live segments or noted
    reached   text COLLATE "C" DEFAULT '', -- the last key that is in a segment of the index that is being built; NULL: it is built
    horizon   bigint, -- rows are read when the transactions before this one have ended: they may not have noted what they wrote
    claim_ends_at timestamptz(6), -- until when a process works on it
    segment   integer NOT NULL DEFAULT 0, -- the last one
    docs      bigint NOT NULL DEFAULT 0, -- in all segments when it was built
    n         bigint NOT NULL DEFAULT 0, -- the list's total then
    PRIMARY KEY (tenant_id, list, part)
);
CREATE INDEX tc_search_lists_unbuilt ON tc_search_lists (tenant_id, list, part) WHERE reached IS NOT NULL;
CREATE TABLE tc_search_noted (
    tenant_id text COLLATE "C" NOT NULL,
    list      text COLLATE "C" NOT NULL,
    part      text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL, -- the row's key in the list
    tx        text COLLATE "C" NOT NULL, -- that wrote it: a note that was read is told from a newer one
    PRIMARY KEY (tenant_id, list, part, id, tx),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
);
CREATE TABLE tc_search_segments (
    tenant_id text COLLATE "C" NOT NULL,
    list      text COLLATE "C" NOT NULL,
    part      text COLLATE "C" NOT NULL,
    segment   integer NOT NULL,
    docs      integer NOT NULL,
    state     text COLLATE "C" NOT NULL, -- written, built: of an index that is not yet all there, live, gone
    PRIMARY KEY (tenant_id, list, part, segment),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
);
CREATE TABLE tc_search_docs (
    tenant_id text COLLATE "C" NOT NULL,
    list      text COLLATE "C" NOT NULL,
    part      text COLLATE "C" NOT NULL,
    block     text COLLATE "C" NOT NULL, -- the segment's number and the block's
    segment   integer NOT NULL,
    ids       text NOT NULL, -- keys of rows as a JSON array
    PRIMARY KEY (tenant_id, list, part, block),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
);
CREATE TABLE tc_search_grams (
    tenant_id text COLLATE "C" NOT NULL,
    list      text COLLATE "C" NOT NULL,
    part      text COLLATE "C" NOT NULL,
    gram      text COLLATE "C" NOT NULL,
    segment   integer NOT NULL,
    n         integer NOT NULL,
    docs      text NOT NULL, -- the numbers of n rows of the segment: see internal/trigrams
    PRIMARY KEY (tenant_id, list, part, gram, segment),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
);

-- tc_keep_search notes the rows of a table whose text is new, if their list has an index.
CREATE FUNCTION tc_keep_search(list text, tbl text, key text, part text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    note text := format('INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) SELECT w.tenant_id, l.list, l.part, w.%I, CAST(txid_current() AS text) FROM ', key);
    list_of text := format(' ON l.tenant_id = w.tenant_id AND l.list = %L AND l.part = ', list) || CASE part WHEN '' THEN '''''' ELSE format('w.%I', part) END
        || ' ON CONFLICT DO NOTHING;';
BEGIN
    EXECUTE format($f$CREATE FUNCTION tc_search_%s_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    %s
    RETURN NULL;
END $$$f$, list, note || 'now w JOIN tc_search_lists l' || list_of);
    EXECUTE format($f$CREATE FUNCTION tc_search_%s_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    %s
    RETURN NULL;
END $$$f$, list, note || '(SELECT NEW.*) w JOIN tc_search_lists l' || list_of);
    EXECUTE format('CREATE TRIGGER tc_search_%s_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS now FOR EACH STATEMENT EXECUTE FUNCTION tc_search_%1$s_inserted()', list, tbl);
    EXECUTE format('CREATE TRIGGER tc_search_%1$s_update AFTER UPDATE OF search, %2$I%3$s ON %4$s FOR EACH ROW WHEN (OLD.search IS DISTINCT FROM NEW.search
        OR OLD.%2$I IS DISTINCT FROM NEW.%2$I%5$s) EXECUTE FUNCTION tc_search_%1$s_changed()', list, key,
        CASE part WHEN '' THEN '' ELSE format(', %I', part) END, tbl, CASE part WHEN '' THEN '' ELSE format(' OR OLD.%1$I IS DISTINCT FROM NEW.%1$I', part) END);
END $body$;

SELECT tc_keep_search('ai_instructions', 'tc_ai_instructions', 'id', '');
SELECT tc_keep_search('apps', 'tc_apps', 'id', '');
SELECT tc_keep_search('assistants', 'tc_assistants', 'id', '');
SELECT tc_keep_search('bundles', 'tc_bundles', 'id', '');
SELECT tc_keep_search('colors', 'tc_colors', 'key', '');
SELECT tc_keep_search('domains', 'tc_domains', 'id', '');
SELECT tc_keep_search('entities', 'tc_entities', 'id', 'kind');
SELECT tc_keep_search('teams', 'tc_teams', 'id', '');
SELECT tc_keep_search('users', 'tc_users', 'folded', '');

-- A list gets an index when it has 2,000 rows. Its total is known when the slots are added up.
CREATE FUNCTION tc_search_list() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tc_search_lists (tenant_id, list, part) VALUES (NEW.tenant_id, NEW.list, NEW.part) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER tc_search_list AFTER INSERT OR UPDATE ON tc_totals FOR EACH ROW WHEN (NEW.slot = 0 AND NEW.n >= 2000
    AND NEW.list IN ('ai_instructions', 'apps', 'assistants', 'bundles', 'colors', 'domains', 'entities', 'teams', 'users')) EXECUTE FUNCTION tc_search_list();
ALTER TABLE tc_totals NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
INSERT INTO tc_search_lists (tenant_id, list, part) SELECT tenant_id, list, part FROM tc_totals
    WHERE list IN ('ai_instructions', 'apps', 'assistants', 'bundles', 'colors', 'domains', 'entities', 'teams', 'users') GROUP BY 1, 2, 3 HAVING sum(n) >= 2000;
