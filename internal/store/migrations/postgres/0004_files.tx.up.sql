CREATE TABLE tc_blobs (
    tenant_id  text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id         text COLLATE "C" NOT NULL,
    size       bigint NOT NULL,
    chunks     integer NOT NULL,
    complete   boolean NOT NULL,
    created_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_blobs_incomplete ON tc_blobs (tenant_id, created_at) WHERE NOT complete;

CREATE TABLE tc_blob_chunks (
    tenant_id text COLLATE "C" NOT NULL,
    blob_id   text COLLATE "C" NOT NULL,
    number    integer NOT NULL,
    bytes     bytea NOT NULL,
    PRIMARY KEY (tenant_id, blob_id, number),
    FOREIGN KEY (tenant_id, blob_id) REFERENCES tc_blobs ON DELETE CASCADE
);
ALTER TABLE tc_blob_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE tc_uploads (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id           text COLLATE "C" NOT NULL,
    username     text COLLATE "C" NOT NULL,
    filename     text NOT NULL,
    content_type text NOT NULL,
    size         bigint NOT NULL,
    chunks       integer NOT NULL,
    created_at   timestamptz(6) NOT NULL,
    expires_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_uploads_user ON tc_uploads (tenant_id, username, id);
CREATE INDEX tc_uploads_expires ON tc_uploads (tenant_id, expires_at);

CREATE TABLE tc_downloads (
    tenant_id    text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id           text COLLATE "C" NOT NULL,
    username     text COLLATE "C" NOT NULL,
    filename     text NOT NULL,
    content_type text NOT NULL,
    size         bigint NOT NULL,
    chunks       integer NOT NULL,
    created_at   timestamptz(6) NOT NULL,
    expires_at   timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_downloads_user ON tc_downloads (tenant_id, username, id);
CREATE INDEX tc_downloads_expires ON tc_downloads (tenant_id, expires_at);
