CREATE TABLE tc_blobs (
    tenant_id  text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text NOT NULL,
    size       integer NOT NULL,
    chunks     integer NOT NULL,
    complete   integer NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_blobs_incomplete ON tc_blobs (tenant_id, created_at) WHERE NOT complete;

CREATE TABLE tc_blob_chunks (
    tenant_id text NOT NULL,
    blob_id   text NOT NULL,
    number    integer NOT NULL,
    bytes     blob NOT NULL,
    PRIMARY KEY (tenant_id, blob_id, number),
    FOREIGN KEY (tenant_id, blob_id) REFERENCES tc_blobs ON DELETE CASCADE
) STRICT;

CREATE TABLE tc_uploads (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id           text NOT NULL,
    username     text NOT NULL,
    filename     text NOT NULL,
    content_type text NOT NULL,
    size         integer NOT NULL,
    chunks       integer NOT NULL,
    created_at   text NOT NULL,
    expires_at   text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_uploads_user ON tc_uploads (tenant_id, username, id);
CREATE INDEX tc_uploads_expires ON tc_uploads (tenant_id, expires_at);

CREATE TABLE tc_downloads (
    tenant_id    text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id           text NOT NULL,
    username     text NOT NULL,
    filename     text NOT NULL,
    content_type text NOT NULL,
    size         integer NOT NULL,
    chunks       integer NOT NULL,
    created_at   text NOT NULL,
    expires_at   text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_downloads_user ON tc_downloads (tenant_id, username, id);
CREATE INDEX tc_downloads_expires ON tc_downloads (tenant_id, expires_at);
