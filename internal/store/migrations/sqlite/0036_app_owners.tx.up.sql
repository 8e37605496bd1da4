-- Whether somebody else has made its owner the owner of an app, who has not deployed it since: no webhook or agent runs as them.
ALTER TABLE tc_apps ADD COLUMN awaits_owner integer NOT NULL DEFAULT 0;
