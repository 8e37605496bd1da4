-- Under which password a session began: that is over when the user has another one, whatever the clock says. NULL: before this migration, or without one.
ALTER TABLE tc_sessions ADD COLUMN password_set_at timestamptz;
