-- Tells a piece that a deploy brought from one that got its id later.
ALTER TABLE tc_deployments ADD COLUMN mark text COLLATE "C" NOT NULL DEFAULT '';
