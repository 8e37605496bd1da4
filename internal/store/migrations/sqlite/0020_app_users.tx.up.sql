-- What users have of apps: those they marked, when they last viewed each, and how often they viewed each on a day.
CREATE TABLE tc_app_favorites (
    tenant_id  text NOT NULL,
    username   text NOT NULL,
    app_id     text NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, username, app_id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_apps ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_app_favorites_app ON tc_app_favorites (tenant_id, app_id);

CREATE TABLE tc_app_visits (
    tenant_id  text NOT NULL,
    username   text NOT NULL,
    app_id     text NOT NULL,
    visited_at text NOT NULL,
    PRIMARY KEY (tenant_id, username, app_id),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_apps ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_app_visits_last ON tc_app_visits (tenant_id, username, visited_at, app_id);
CREATE INDEX tc_app_visits_app ON tc_app_visits (tenant_id, app_id);

CREATE TABLE tc_app_views (
    tenant_id text NOT NULL,
    app_id    text NOT NULL,
    day       text NOT NULL, -- in UTC, such as 2026-11-20
    username  text NOT NULL,
    n         integer NOT NULL,
    PRIMARY KEY (tenant_id, app_id, day, username),
    FOREIGN KEY (tenant_id, username) REFERENCES tc_principals ON DELETE CASCADE ON UPDATE CASCADE,
    FOREIGN KEY (tenant_id, app_id) REFERENCES tc_apps ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_app_views_user ON tc_app_views (tenant_id, username);
