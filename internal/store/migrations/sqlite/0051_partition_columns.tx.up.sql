-- SQLite has no partitions.
SELECT 1;
