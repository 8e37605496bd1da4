-- What users have of apps: those they marked, when they last viewed each, and how often they viewed each on a day.
CREATE TABLE tc_app_favorites (
    tenant_id  text COLLATE "C" NOT NULL,
    username   text COLLATE "C" NOT NULL,
    app_id     text COLLATE "C" NOT NULL,
    created_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, username, app_id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_apps ON DELETE CASCADE
);
CREATE INDEX tc_app_favorites_app ON tc_app_favorites (tenant_id, app_id);

CREATE TABLE tc_app_visits (
    tenant_id  text COLLATE "C" NOT NULL,
    username   text COLLATE "C" NOT NULL,
    app_id     text COLLATE "C" NOT NULL,
    visited_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, username, app_id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_apps ON DELETE CASCADE
);
CREATE INDEX tc_app_visits_last ON tc_app_visits (tenant_id, username, visited_at, app_id);
CREATE INDEX tc_app_visits_app ON tc_app_visits (tenant_id, app_id);

CREATE TABLE tc_app_views (
    tenant_id text COLLATE "C" NOT NULL,
    app_id    text COLLATE "C" NOT NULL,
    day       text COLLATE "C" NOT NULL, -- in UTC, such as 2026-11-20
    username  text COLLATE "C" NOT NULL,
    n         bigint NOT NULL,
    PRIMARY KEY (tenant_id, app_id, day, username),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_apps ON DELETE CASCADE
);
CREATE INDEX tc_app_views_user ON tc_app_views (tenant_id, username);
