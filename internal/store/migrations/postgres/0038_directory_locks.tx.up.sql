-- Whether the directory that has disabled a user has only locked them, for instance after wrong passwords: sessions and tokens wait for its end.
ALTER TABLE tc_users ADD COLUMN directory_locked boolean NOT NULL DEFAULT false;
