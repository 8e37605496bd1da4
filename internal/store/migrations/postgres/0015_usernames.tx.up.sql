-- Usernames are compared by their NFKC form: see refold, which writes that, as no engine folds as Go does.
SELECT 1;
