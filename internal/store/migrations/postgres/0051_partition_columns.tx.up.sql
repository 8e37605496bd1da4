-- Partitions that were made before 0040 knew of them are told, too, how many values a column has.
ALTER TABLE tc_comments ALTER COLUMN parent_id SET (n_distinct = -0.2);
