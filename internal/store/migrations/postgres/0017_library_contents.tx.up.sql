-- The bytes of equal files are stored once. Files that are there keep theirs, whose digests are not known.
CREATE TABLE tc_library_contents (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id        text COLLATE "C" NOT NULL,
    sha256    text COLLATE "C",
    size      bigint NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tc_library_contents_sha256 ON tc_library_contents (tenant_id, sha256);

CREATE TABLE tc_library_released (
    tenant_id   text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    content_id  text COLLATE "C" NOT NULL,
    library_id  text COLLATE "C" NOT NULL,
    released_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, content_id, library_id)
);
CREATE INDEX tc_library_released_at ON tc_library_released (tenant_id, released_at);

ALTER TABLE tc_library_files RENAME COLUMN blob_id TO content_id;
ALTER TABLE tc_library_files ADD COLUMN sha256 text;
ALTER TABLE tc_library_files ADD COLUMN created_at timestamptz(6);
ALTER TABLE tc_library_files NO FORCE ROW LEVEL SECURITY; -- so that its owner sees all rows; Run forces it again where it is on
UPDATE tc_library_files SET created_at = updated_at;
ALTER TABLE tc_library_files ALTER COLUMN created_at SET NOT NULL;
CREATE INDEX tc_library_files_content ON tc_library_files (tenant_id, content_id);
INSERT INTO tc_library_contents (tenant_id, id, size) SELECT tenant_id, content_id, size FROM tc_library_files;
