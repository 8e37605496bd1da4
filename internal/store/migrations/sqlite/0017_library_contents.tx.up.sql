-- The bytes of equal files are stored once. Files that are there keep theirs, whose digests are not known.
CREATE TABLE tc_library_contents (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id        text NOT NULL,
    sha256    text,
    size      integer NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX tc_library_contents_sha256 ON tc_library_contents (tenant_id, sha256);

CREATE TABLE tc_library_released (
    tenant_id   text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    content_id  text NOT NULL,
    library_id  text NOT NULL,
    released_at text NOT NULL,
    PRIMARY KEY (tenant_id, content_id, library_id)
) STRICT;
CREATE INDEX tc_library_released_at ON tc_library_released (tenant_id, released_at);

ALTER TABLE tc_library_files RENAME TO tc_library_files_old;
DROP INDEX tc_library_files_folded;
DROP INDEX tc_library_files_updated;
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
    PRIMARY KEY (tenant_id, library_id, path)
) STRICT;
INSERT INTO tc_library_files (tenant_id, library_id, path, folded, content_id, size, content_type, updated_at, created_at)
    SELECT tenant_id, library_id, path, folded, blob_id, size, content_type, updated_at, updated_at FROM tc_library_files_old;
DROP TABLE tc_library_files_old;
CREATE UNIQUE INDEX tc_library_files_folded ON tc_library_files (tenant_id, library_id, folded);
CREATE INDEX tc_library_files_updated ON tc_library_files (tenant_id, library_id, updated_at, path);
CREATE INDEX tc_library_files_content ON tc_library_files (tenant_id, content_id);
INSERT INTO tc_library_contents (tenant_id, id, size) SELECT tenant_id, content_id, size FROM tc_library_files;
