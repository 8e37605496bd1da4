-- Comments that are removed are gone for everybody at once, and their rows later. thread_no of an entity counts how often all of its comments
-- were removed. A comment is there if it has that number, and so has the one on top of it; one that is removed with many replies becomes
-- a comment on top with the number -1, and so do replies below it, until their rows are removed. removing_at is since when there are
-- such rows.
ALTER TABLE tc_comment_threads ADD COLUMN thread_no integer NOT NULL DEFAULT 0;
ALTER TABLE tc_comment_threads ADD COLUMN removing_at text;
CREATE INDEX tc_comment_threads_removing ON tc_comment_threads (tenant_id, kind, entity_id) WHERE removing_at IS NOT NULL;
CREATE INDEX tc_comment_threads_due ON tc_comment_threads (removing_at, tenant_id) WHERE removing_at IS NOT NULL;
ALTER TABLE tc_comments ADD COLUMN thread_no integer NOT NULL DEFAULT 0;
DROP INDEX tc_comments_entity;
CREATE INDEX tc_comments_entity ON tc_comments (tenant_id, kind, entity_id, thread_no, created_at, id) WHERE parent_id IS NULL;

-- How many users with a name were deleted, and how many had been when a comment was written: the author of one with a smaller number is gone.
CREATE TABLE tc_comment_authors (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    username  text NOT NULL,
    author_no integer NOT NULL,
    PRIMARY KEY (tenant_id, username)
) STRICT;
ALTER TABLE tc_comments ADD COLUMN author_no integer NOT NULL DEFAULT 0;
UPDATE tc_comments SET author_no = -1 WHERE author_gone;
ALTER TABLE tc_comments DROP COLUMN author_gone;
ALTER TABLE tc_activities DROP COLUMN author_gone;
