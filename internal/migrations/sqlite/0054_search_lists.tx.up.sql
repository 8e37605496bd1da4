-- Only PostgreSQL has another way of adding the lists that get an index.
SELECT 1;
