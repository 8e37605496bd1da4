-- The indexes of searches have longer grams beside common trigrams: they are built again, and lists are compared row by row until then.
UPDATE tc_search_segments SET state = 'gone';
UPDATE tc_search_lists SET usable = 0, reached = '', claim_ends_at = NULL;
