-- Whether a user has typed the e-mail address, and the address with small letters of ASCII where somebody else has set it: logins at other domains find users by it.
ALTER TABLE tc_users ADD COLUMN email_typed integer NOT NULL DEFAULT 0;
ALTER TABLE tc_users ADD COLUMN email_key text;
-- Of those that are here, nobody knows who has set them; what a directory or provider has not brought does not count until it is set again.
UPDATE tc_users SET email_typed = (source IS NULL), email_key = CASE WHEN source IS NULL THEN NULL ELSE lower(email) END WHERE email IS NOT NULL;
CREATE INDEX tc_users_email ON tc_users (tenant_id, domain, email_key) WHERE email_key IS NOT NULL;
