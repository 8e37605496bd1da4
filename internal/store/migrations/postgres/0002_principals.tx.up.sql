CREATE TABLE tc_principals (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id        text COLLATE "C" NOT NULL,
    type      text COLLATE "C" NOT NULL,
    label     text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX tc_principals_label ON tc_principals (tenant_id, label, id);

CREATE TABLE tc_users (
    tenant_id            text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    username             text COLLATE "C" NOT NULL,
    folded               text COLLATE "C" NOT NULL,
    label                text COLLATE "C" NOT NULL,
    search               text COLLATE "C" NOT NULL,
    domain               text COLLATE "C" NOT NULL,
    display_name         text,
    family_name          text,
    given_name           text,
    middle_name          text,
    email                text,
    timezone             text,
    superuser            boolean NOT NULL,
    enabled              boolean NOT NULL,
    may_ai               boolean NOT NULL,
    may_create_jobs      boolean NOT NULL,
    may_view_all_teams   boolean NOT NULL,
    may_view_all_users   boolean NOT NULL,
    may_script           boolean NOT NULL,
    source               text,
    source_id            text COLLATE "C",
    data                 text NOT NULL,
    user_fields          text NOT NULL,
    password_hash        text,
    password_set_at      timestamptz(6),
    password_expires_at  timestamptz(6),
    password_asked_at    timestamptz(6),
    login_attempts       integer NOT NULL,
    locked_at            timestamptz(6),
    mfa                  boolean NOT NULL,
    ai_message           text,
    ai_consent           boolean NOT NULL,
    last_viewed_feed     timestamptz(6),
    avatar_id            text COLLATE "C",
    avatar_updated_at    timestamptz(6),
    created_at           timestamptz(6) NOT NULL,
    updated_at           timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, username)
);
CREATE UNIQUE INDEX tc_users_folded ON tc_users (tenant_id, folded);
CREATE INDEX tc_users_label ON tc_users (tenant_id, label, folded);
CREATE INDEX tc_users_created ON tc_users (tenant_id, created_at, folded);
CREATE INDEX tc_users_updated ON tc_users (tenant_id, updated_at, folded);
CREATE INDEX tc_users_domain ON tc_users (tenant_id, domain, source_id);
CREATE INDEX tc_users_superusers ON tc_users (tenant_id, username) WHERE superuser;

CREATE TABLE tc_teams (
    tenant_id     text COLLATE "C" NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    id            text COLLATE "C" NOT NULL,
    name          text NOT NULL,
    slug          text COLLATE "C" NOT NULL,
    label         text COLLATE "C" NOT NULL,
    search        text COLLATE "C" NOT NULL,
    description   text,
    domain        text COLLATE "C" NOT NULL,
    color         text,
    icon          text,
    material_icon text,
    source        text,
    source_id     text COLLATE "C",
    created_at    timestamptz(6) NOT NULL,
    updated_at    timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX tc_teams_slug ON tc_teams (tenant_id, slug);
CREATE INDEX tc_teams_label ON tc_teams (tenant_id, label, id);
CREATE INDEX tc_teams_created ON tc_teams (tenant_id, created_at, id);
CREATE INDEX tc_teams_updated ON tc_teams (tenant_id, updated_at, id);
CREATE INDEX tc_teams_domain ON tc_teams (tenant_id, domain, source_id);

CREATE TABLE tc_memberships (
    tenant_id  text COLLATE "C" NOT NULL,
    team_id    text COLLATE "C" NOT NULL,
    username   text COLLATE "C" NOT NULL,
    role       smallint NOT NULL,
    created_at timestamptz(6) NOT NULL,
    PRIMARY KEY (tenant_id, team_id, username),
    FOREIGN KEY (tenant_id, team_id) REFERENCES tc_teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, username) REFERENCES tc_users ON DELETE CASCADE
);
CREATE INDEX tc_memberships_user ON tc_memberships (tenant_id, username, team_id);

CREATE FUNCTION tc_users_principal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM tc_principals WHERE tenant_id = OLD.tenant_id AND id = OLD.username;
        RETURN OLD;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO tc_principals (tenant_id, id, type, label) VALUES (NEW.tenant_id, NEW.username, 'User', NEW.label);
    ELSE
        UPDATE tc_principals SET id = NEW.username, label = NEW.label WHERE tenant_id = OLD.tenant_id AND id = OLD.username;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tc_users_principal AFTER INSERT OR DELETE OR UPDATE OF username, label ON tc_users
    FOR EACH ROW EXECUTE FUNCTION tc_users_principal();

CREATE FUNCTION tc_teams_principal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM tc_principals WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
        RETURN OLD;
    ELSIF TG_OP = 'INSERT' THEN
        INSERT INTO tc_principals (tenant_id, id, type, label) VALUES (NEW.tenant_id, NEW.id, 'Team', NEW.label);
    ELSE
        UPDATE tc_principals SET label = NEW.label WHERE tenant_id = OLD.tenant_id AND id = OLD.id;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tc_teams_principal AFTER INSERT OR DELETE OR UPDATE OF label ON tc_teams
    FOR EACH ROW EXECUTE FUNCTION tc_teams_principal();

CREATE FUNCTION tc_tenants_principal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tc_principals (tenant_id, id, type, label) VALUES (NEW.tenant_id, '*', 'Everyone', '');
    RETURN NEW;
END $$;
CREATE TRIGGER tc_tenants_principal AFTER INSERT ON tc_tenants
    FOR EACH ROW EXECUTE FUNCTION tc_tenants_principal();
