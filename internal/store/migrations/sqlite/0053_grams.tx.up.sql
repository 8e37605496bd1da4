-- The indexes of searches have longer grams beside common trigrams: they are built again, and lists are compared row by row until then.
UPDATE tc_search_segments SET state = 'gone';
UPDATE tc_search_lists SET usable = 0, reached = '', claim_ends_at = NULL;
-- A table WITHOUT ROWID has its rows in the index of its key, and SQLite reads all of a long row, docs included, to compare its key.
DROP TABLE tc_search_grams;
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
) STRICT;
