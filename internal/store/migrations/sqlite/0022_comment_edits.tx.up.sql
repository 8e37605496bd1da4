-- When the message of a comment was last changed; NULL when it is as it was written, or was changed before this was kept.
ALTER TABLE tc_comments ADD COLUMN edited_at text;
