-- How many users of a name were deleted. The rows of a user's account have the name and, after a slash, this number, if there is one: nobody who
-- gets the name later has them.
CREATE TABLE tc_former_users (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    username  text COLLATE "C" NOT NULL,
    n         integer NOT NULL,
    PRIMARY KEY (tenant_id, username)
);
ALTER TABLE tc_comment_authors NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
INSERT INTO tc_former_users SELECT tenant_id, username, author_no FROM tc_comment_authors;
DROP TABLE tc_comment_authors;

-- What was deleted and still has rows, which nobody sees: a user by the account, others by id. times is how often it was.
CREATE TABLE tc_removals (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    kind      text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    times     integer NOT NULL,
    deleted_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);
CREATE INDEX tc_removals_due ON tc_removals (deleted_at, tenant_id);
ALTER TABLE tc_comment_threads NO FORCE ROW LEVEL SECURITY;
INSERT INTO tc_removals SELECT tenant_id, kind, entity_id, 1, removing_at FROM tc_comment_threads WHERE removing_at IS NOT NULL;
DROP INDEX tc_comment_threads_due;
ALTER TABLE tc_jobs NO FORCE ROW LEVEL SECURITY;
UPDATE tc_jobs SET kind = 'remove-rows' WHERE kind = 'remove-comments';

-- The rows of accounts, and the members of teams, stay when their user or team is deleted, until they are removed in steps.
ALTER TABLE tc_feed DROP CONSTRAINT tc_feed_tenant_id_username_fkey;
ALTER TABLE tc_notifications DROP CONSTRAINT tc_notifications_tenant_id_username_fkey;
ALTER TABLE tc_app_favorites DROP CONSTRAINT tc_app_favorites_tenant_id_username_fkey;
ALTER TABLE tc_app_visits DROP CONSTRAINT tc_app_visits_tenant_id_username_fkey;
ALTER TABLE tc_app_views DROP CONSTRAINT tc_app_views_tenant_id_username_fkey;
ALTER TABLE tc_memberships DROP CONSTRAINT tc_memberships_tenant_id_team_id_fkey;

-- A user whose name others had before has an account of its own. The triggers change the totals.
ALTER TABLE tc_totals NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_feed NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_notifications NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_app_favorites NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_app_visits NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_app_views NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_uploads NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tc_downloads NO FORCE ROW LEVEL SECURITY;
UPDATE tc_feed AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_notifications AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_app_favorites AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_app_visits AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_app_views AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_uploads AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
UPDATE tc_downloads AS x SET username = x.username || '/' || w.n FROM tc_former_users w WHERE w.tenant_id = x.tenant_id AND w.username = x.username;
