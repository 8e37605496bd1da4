-- When a user read a notification; NULL while it is unread.
ALTER TABLE tc_notifications ADD COLUMN read_at text;
CREATE INDEX tc_notifications_unread ON tc_notifications (tenant_id, username, created_at, id) WHERE read_at IS NULL;
