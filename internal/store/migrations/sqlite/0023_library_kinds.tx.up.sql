-- The files of an app's library are of the kind app: no row of another kind with the same id reaches them.
ALTER TABLE tc_library_files RENAME TO tc_library_files_old;
DROP INDEX tc_library_files_folded;
DROP INDEX tc_library_files_updated;
DROP INDEX tc_library_files_content;
CREATE TABLE tc_library_files (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    library_id   text NOT NULL,
    path         text NOT NULL,
    folded       text NOT NULL,
    content_id   text NOT NULL,
    size         integer NOT NULL,
    content_type text NOT NULL,
    updated_at   text NOT NULL,
    sha256       text,
    created_at   text NOT NULL,
    kind         text NOT NULL,
    PRIMARY KEY (tenant_id, kind, library_id, path)
) STRICT;
INSERT INTO tc_library_files (tenant_id, kind, library_id, path, folded, content_id, size, content_type, updated_at, sha256, created_at)
    SELECT tenant_id, CASE WHEN EXISTS (SELECT 1 FROM tc_apps a WHERE a.tenant_id = f.tenant_id AND a.library_id = f.library_id) THEN 'app' ELSE 'library' END,
        library_id, path, folded, content_id, size, content_type, updated_at, sha256, created_at
    FROM tc_library_files_old f;
DROP TABLE tc_library_files_old;
CREATE UNIQUE INDEX tc_library_files_folded ON tc_library_files (tenant_id, kind, library_id, folded);
CREATE INDEX tc_library_files_updated ON tc_library_files (tenant_id, kind, library_id, updated_at, path);
CREATE INDEX tc_library_files_content ON tc_library_files (tenant_id, content_id);
