CREATE TABLE tc_principals (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id        text NOT NULL,
    type      text NOT NULL,
    label     text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX tc_principals_label ON tc_principals (tenant_id, label, id);

CREATE TABLE tc_users (
    tenant_id            text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    username             text NOT NULL,
    folded               text NOT NULL,
    label                text NOT NULL,
    search               text NOT NULL,
    domain               text NOT NULL,
    display_name         text,
    family_name          text,
    given_name           text,
    middle_name          text,
    email                text,
    timezone             text,
    superuser            integer NOT NULL,
    enabled              integer NOT NULL,
    may_ai               integer NOT NULL,
    may_create_jobs      integer NOT NULL,
    may_view_all_teams   integer NOT NULL,
    may_view_all_users   integer NOT NULL,
    may_script           integer NOT NULL,
    source               text,
    source_id            text,
    data                 text NOT NULL,
    user_fields          text NOT NULL,
    password_hash        text,
    password_set_at      text,
    password_expires_at  text,
    password_asked_at    text,
    login_attempts       integer NOT NULL,
    locked_at            text,
    mfa                  integer NOT NULL,
    ai_message           text,
    ai_consent           integer NOT NULL,
    last_viewed_feed     text,
    avatar_id            text,
    avatar_updated_at    text,
    created_at           text NOT NULL,
    updated_at           text NOT NULL,
    PRIMARY KEY (tenant_id, username)
) STRICT;
CREATE UNIQUE INDEX tc_users_folded ON tc_users (tenant_id, folded);
CREATE INDEX tc_users_label ON tc_users (tenant_id, label, folded);
CREATE INDEX tc_users_created ON tc_users (tenant_id, created_at, folded);
CREATE INDEX tc_users_updated ON tc_users (tenant_id, updated_at, folded);
CREATE INDEX tc_users_domain ON tc_users (tenant_id, domain, source_id);
CREATE INDEX tc_users_superusers ON tc_users (tenant_id, username) WHERE superuser;

CREATE TABLE tc_teams (
    tenant_id     text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id            text NOT NULL,
    name          text NOT NULL,
    slug          text NOT NULL,
    label         text NOT NULL,
    search        text NOT NULL,
    description   text,
    domain        text NOT NULL,
    color         text,
    icon          text,
    material_icon text,
    source        text,
    source_id     text,
    created_at    text NOT NULL,
    updated_at    text NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE UNIQUE INDEX tc_teams_slug ON tc_teams (tenant_id, slug);
CREATE INDEX tc_teams_label ON tc_teams (tenant_id, label, id);
CREATE INDEX tc_teams_created ON tc_teams (tenant_id, created_at, id);
CREATE INDEX tc_teams_updated ON tc_teams (tenant_id, updated_at, id);
CREATE INDEX tc_teams_domain ON tc_teams (tenant_id, domain, source_id);

CREATE TABLE tc_memberships (
    tenant_id  text NOT NULL,
    team_id    text NOT NULL,
    username   text NOT NULL,
    role       integer NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (tenant_id, team_id, username),
    FOREIGN KEY (tenant_id, team_id) REFERENCES tc_teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE
) STRICT;
CREATE INDEX tc_memberships_user ON tc_memberships (tenant_id, username, team_id);

CREATE TRIGGER tc_users_principal_insert AFTER INSERT ON tc_users BEGIN
    INSERT INTO tc_principals (tenant_id, id, type, label) VALUES (NEW.tenant_id, NEW.username, 'User', NEW.label);
END;
CREATE TRIGGER tc_users_principal_update AFTER UPDATE OF username, label ON tc_users BEGIN
    UPDATE tc_principals SET id = NEW.username, label = NEW.label WHERE tenant_id = OLD.tenant_id AND id = OLD.username;
END;
CREATE TRIGGER tc_users_principal_delete AFTER DELETE ON tc_users BEGIN
    DELETE FROM tc_principals WHERE tenant_id = OLD.tenant_id AND id = OLD.username;
END;

CREATE TRIGGER tc_teams_principal_insert AFTER INSERT ON tc_teams BEGIN
    INSERT INTO tc_principals (tenant_id, id, type, label) VALUES (NEW.tenant_id, NEW.id, 'Team', NEW.label);
END;
CREATE TRIGGER tc_teams_principal_update AFTER UPDATE OF label ON tc_teams BEGIN
    UPDATE tc_principals SET label = NEW.label WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
END;
CREATE TRIGGER tc_teams_principal_delete AFTER DELETE ON tc_teams BEGIN
    DELETE FROM tc_principals WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
END;

CREATE TRIGGER tc_tenants_principal AFTER INSERT ON tc_tenants BEGIN
    INSERT INTO tc_principals (tenant_id, id, type, label) VALUES (NEW.tenant_id, '*', 'Everyone', '');
END;
