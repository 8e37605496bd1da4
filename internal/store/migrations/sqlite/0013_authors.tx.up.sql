-- What a user said who has been deleted: whoever gets the name later is somebody else.
ALTER TABLE tc_comments ADD COLUMN author_gone integer NOT NULL DEFAULT 0;
ALTER TABLE tc_activities ADD COLUMN author_gone integer NOT NULL DEFAULT 0;
CREATE INDEX tc_comments_user ON tc_comments (tenant_id, user_id);
CREATE INDEX tc_activities_user ON tc_activities (tenant_id, user_id);
