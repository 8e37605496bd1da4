-- The files of an app's library are of the kind app: no row of another kind with the same id reaches them.
ALTER TABLE tc_library_files ADD COLUMN kind text COLLATE "C" NOT NULL DEFAULT 'library';
ALTER TABLE tc_library_files ALTER COLUMN kind DROP DEFAULT;
ALTER TABLE tc_library_files NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
ALTER TABLE tc_apps NO FORCE ROW LEVEL SECURITY;
UPDATE tc_library_files f SET kind = 'app' FROM tc_apps a WHERE a.tenant_id = f.tenant_id AND a.library_id = f.library_id;
ALTER TABLE tc_library_files DROP CONSTRAINT tc_library_files_pkey;
ALTER TABLE tc_library_files ADD PRIMARY KEY (tenant_id, kind, library_id, path);
DROP INDEX tc_library_files_folded;
DROP INDEX tc_library_files_updated;
CREATE UNIQUE INDEX tc_library_files_folded ON tc_library_files (tenant_id, kind, library_id, folded);
CREATE INDEX tc_library_files_updated ON tc_library_files (tenant_id, kind, library_id, updated_at, path);
