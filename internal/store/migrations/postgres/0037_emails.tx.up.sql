-- Whether a user has typed the e-mail address, and the address with small letters of ASCII where somebody else has set it: logins at other domains find users by it.
ALTER TABLE tc_users ADD COLUMN email_typed boolean NOT NULL DEFAULT false;
ALTER TABLE tc_users ADD COLUMN email_key text COLLATE "C";
-- Of those that are here, nobody knows who has set them; what a directory or provider has not brought does not count until it is set again.
ALTER TABLE tc_users NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
UPDATE tc_users SET email_typed = (source IS NULL), email_key = CASE WHEN source IS NULL THEN NULL
    ELSE translate(email, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz') END WHERE email IS NOT NULL;
CREATE INDEX tc_users_email ON tc_users (tenant_id, domain, email_key) WHERE email_key IS NOT NULL;
