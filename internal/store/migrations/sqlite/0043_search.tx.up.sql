-- Which rows of long lists have which trigrams (three characters in a row) in the text that q is compared with, so that a search reads few rows. The index
-- has all rows that a search finds, and perhaps more: those are compared anyway. A writer notes the rows whose text is new; they are added in the
-- background, as a segment of rows at a time.
CREATE TABLE tc_search_lists (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    list      text NOT NULL, -- with its part, as in tc_totals
    part      text NOT NULL,
    usable    integer NOT NULL DEFAULT 0, -- all rows are in live segments or noted
    reached   text DEFAULT '', -- the last key that is in a segment of the index that is being built; NULL: it is built
    horizon   integer, -- see PostgreSQL's
    claim_ends_at text, -- until when a process works on it
    segment   integer NOT NULL DEFAULT 0, -- the last one
    docs      integer NOT NULL DEFAULT 0, -- in all segments when it was built
    n         integer NOT NULL DEFAULT 0, -- the list's total then
    PRIMARY KEY (tenant_id, list, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX tc_search_lists_unbuilt ON tc_search_lists (tenant_id, list, part) WHERE reached IS NOT NULL;
CREATE TABLE tc_search_noted (
    tenant_id text NOT NULL,
    list      text NOT NULL,
    part      text NOT NULL,
    id        text NOT NULL, -- the row's key in the list
    tx        text NOT NULL, -- by chance: a note that was read is told from a newer one
    PRIMARY KEY (tenant_id, list, part, id, tx),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE tc_search_segments (
    tenant_id text NOT NULL,
    list      text NOT NULL,
    part      text NOT NULL,
    segment   integer NOT NULL,
    docs      integer NOT NULL,
    state     text NOT NULL, -- written, built: of an index that is not yet all there, live, gone
    PRIMARY KEY (tenant_id, list, part, segment),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE tc_search_docs (
    tenant_id text NOT NULL,
    list      text NOT NULL,
    part      text NOT NULL,
    block     text NOT NULL, -- the segment's number and the block's
    segment   integer NOT NULL,
    ids       text NOT NULL, -- keys of rows as a JSON array
    PRIMARY KEY (tenant_id, list, part, block),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TABLE tc_search_grams (
    tenant_id text NOT NULL,
    list      text NOT NULL,
    part      text NOT NULL,
    gram      text NOT NULL,
    segment   integer NOT NULL,
    n         integer NOT NULL,
    docs      text NOT NULL, -- the numbers of n rows of the segment: see internal/trigrams
    PRIMARY KEY (tenant_id, list, part, gram, segment),
    FOREIGN KEY (tenant_id, list, part) REFERENCES tc_search_lists ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Rows whose text is new are noted, if their list has an index.
CREATE TRIGGER tc_search_ai_instructions_insert AFTER INSERT ON tc_ai_instructions WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'ai_instructions' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'ai_instructions', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_ai_instructions_update AFTER UPDATE OF search, id ON tc_ai_instructions WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'ai_instructions' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'ai_instructions', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_apps_insert AFTER INSERT ON tc_apps WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'apps' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'apps', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_apps_update AFTER UPDATE OF search, id ON tc_apps WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'apps' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'apps', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_assistants_insert AFTER INSERT ON tc_assistants WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'assistants' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'assistants', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_assistants_update AFTER UPDATE OF search, id ON tc_assistants WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'assistants' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'assistants', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_bundles_insert AFTER INSERT ON tc_bundles WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'bundles' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'bundles', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_bundles_update AFTER UPDATE OF search, id ON tc_bundles WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'bundles' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'bundles', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_colors_insert AFTER INSERT ON tc_colors WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'colors' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'colors', '', NEW.key, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_colors_update AFTER UPDATE OF search, key ON tc_colors WHEN (OLD.search IS NOT NEW.search OR OLD.key IS NOT NEW.key)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'colors' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'colors', '', NEW.key, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_domains_insert AFTER INSERT ON tc_domains WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'domains' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'domains', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_domains_update AFTER UPDATE OF search, id ON tc_domains WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'domains' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'domains', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_entities_insert AFTER INSERT ON tc_entities WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'entities' AND part = NEW.kind) BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'entities', NEW.kind, NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_entities_update AFTER UPDATE OF search, id, kind ON tc_entities WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id OR OLD.kind IS NOT NEW.kind)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'entities' AND part = NEW.kind) BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'entities', NEW.kind, NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_teams_insert AFTER INSERT ON tc_teams WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'teams' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'teams', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_teams_update AFTER UPDATE OF search, id ON tc_teams WHEN (OLD.search IS NOT NEW.search OR OLD.id IS NOT NEW.id)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'teams' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'teams', '', NEW.id, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_users_insert AFTER INSERT ON tc_users WHEN EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'users' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'users', '', NEW.folded, CAST(random() AS text));
END;
CREATE TRIGGER tc_search_users_update AFTER UPDATE OF search, folded ON tc_users WHEN (OLD.search IS NOT NEW.search OR OLD.folded IS NOT NEW.folded)
    AND EXISTS (SELECT 1 FROM tc_search_lists WHERE tenant_id = NEW.tenant_id AND list = 'users' AND part = '') BEGIN
    INSERT INTO tc_search_noted (tenant_id, list, part, id, tx) VALUES (NEW.tenant_id, 'users', '', NEW.folded, CAST(random() AS text));
END;

-- A list gets an index when it has 2,000 rows.
CREATE TRIGGER tc_search_list AFTER UPDATE OF n ON tc_totals WHEN NEW.n = 2000 AND NEW.list IN ('ai_instructions', 'apps', 'assistants', 'bundles', 'colors', 'domains', 'entities', 'teams', 'users') BEGIN
    INSERT INTO tc_search_lists (tenant_id, list, part) VALUES (NEW.tenant_id, NEW.list, NEW.part) ON CONFLICT DO NOTHING;
END;
INSERT INTO tc_search_lists (tenant_id, list, part) SELECT tenant_id, list, part FROM tc_totals
    WHERE list IN ('ai_instructions', 'apps', 'assistants', 'bundles', 'colors', 'domains', 'entities', 'teams', 'users') GROUP BY 1, 2, 3 HAVING sum(n) >= 2000;
