-- How many users of a name were deleted. The rows of a user's account have the name and, after a slash, this number, if there is one: nobody who
-- gets the name later has them.
CREATE TABLE tc_former_users (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    username  text NOT NULL,
    n         integer NOT NULL,
    PRIMARY KEY (tenant_id, username)
) STRICT;
INSERT INTO tc_former_users SELECT tenant_id, username, author_no FROM tc_comment_authors;
DROP TABLE tc_comment_authors;

-- What was deleted and still has rows, which nobody sees: a user by the account, others by id. times is how often it was.
CREATE TABLE tc_removals (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    kind      text NOT NULL,
    id        text NOT NULL,
    times     integer NOT NULL,
    deleted_at text NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
) STRICT;
INSERT INTO tc_removals SELECT tenant_id, kind, entity_id, 1, removing_at FROM tc_comment_threads WHERE removing_at IS NOT NULL;
DROP INDEX tc_comment_threads_due;
UPDATE tc_jobs SET kind = 'remove-rows' WHERE kind = 'remove-comments';

-- The rows of accounts, and the members of teams, stay when their user or team is deleted, until they are removed in steps. Taking a foreign key away changes
-- nothing in a table of SQLite but its text.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ',
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE ON UPDATE CASCADE', '') WHERE type = 'table' AND name IN ('tc_feed', 'tc_notifications');
UPDATE sqlite_schema SET sql = replace(sql, ',
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE', '') WHERE type = 'table' AND name IN ('tc_app_favorites', 'tc_app_visits', 'tc_app_views');
UPDATE sqlite_schema SET sql = replace(sql, ',
    FOREIGN KEY (tenant_id, team_id) REFERENCES tc_teams ON DELETE CASCADE', '') WHERE type = 'table' AND name = 'tc_memberships';
PRAGMA writable_schema = RESET;
CREATE INDEX tc_removals_due ON tc_removals (deleted_at, tenant_id); -- with a new table or index all connections read the texts again

-- A user whose name others had before has an account of its own.
UPDATE tc_feed AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_notifications AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_app_favorites AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_app_visits AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_app_views AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_uploads AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_downloads AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
