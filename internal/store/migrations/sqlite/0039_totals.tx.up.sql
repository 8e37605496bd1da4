-- How many rows the lists have, so that no page counts them. Each table's triggers keep its lists, whoever writes its rows. The number of a list's
-- part is the sum of its slots. SQLite has one writer, and its slot is 0.
CREATE TABLE tc_totals (
    tenant_id text NOT NULL REFERENCES tc_tenants ON DELETE CASCADE,
    list      text NOT NULL,
    part      text NOT NULL, -- such as the kind, or '' for a list of all rows
    slot      integer NOT NULL,
    n         integer NOT NULL,
    PRIMARY KEY (tenant_id, list, part, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX tc_totals_slots ON tc_totals (tenant_id, list, part) WHERE slot <> 0;
CREATE TRIGGER tc_ai_instructions_total_insert AFTER INSERT ON tc_ai_instructions BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'ai_instructions', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_ai_instructions_total_delete AFTER DELETE ON tc_ai_instructions BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'ai_instructions' AND part = '' AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'ai_instructions', '', 0, count(*) FROM tc_ai_instructions GROUP BY tenant_id;

CREATE TRIGGER tc_bundles_total_insert AFTER INSERT ON tc_bundles BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'bundles', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_bundles_total_delete AFTER DELETE ON tc_bundles BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'bundles' AND part = '' AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'bundles', '', 0, count(*) FROM tc_bundles GROUP BY tenant_id;

CREATE TRIGGER tc_bundle_entries_total_insert AFTER INSERT ON tc_bundle_entries BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'bundle_entries', NEW.bundle_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_bundle_entries_total_delete AFTER DELETE ON tc_bundle_entries BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'bundle_entries' AND part = OLD.bundle_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'bundle_entries' AND part = OLD.bundle_id AND slot = 0 AND n = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'bundle_entries', bundle_id, 0, count(*) FROM tc_bundle_entries GROUP BY tenant_id, bundle_id;

CREATE TRIGGER tc_colors_total_insert AFTER INSERT ON tc_colors BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'colors', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_colors_total_delete AFTER DELETE ON tc_colors BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'colors' AND part = '' AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'colors', '', 0, count(*) FROM tc_colors GROUP BY tenant_id;

CREATE TRIGGER tc_domains_total_insert AFTER INSERT ON tc_domains BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'domains', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_domains_total_delete AFTER DELETE ON tc_domains BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'domains' AND part = '' AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'domains', '', 0, count(*) FROM tc_domains GROUP BY tenant_id;

CREATE TRIGGER tc_teams_total_insert AFTER INSERT ON tc_teams BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'teams', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_teams_total_delete AFTER DELETE ON tc_teams BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'teams' AND part = '' AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'teams', '', 0, count(*) FROM tc_teams GROUP BY tenant_id;

CREATE TRIGGER tc_users_total_insert AFTER INSERT ON tc_users BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'users', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_users_total_delete AFTER DELETE ON tc_users BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'users' AND part = '' AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'users', '', 0, count(*) FROM tc_users GROUP BY tenant_id;

CREATE TRIGGER tc_apps_total_insert AFTER INSERT ON tc_apps WHEN NEW.editing_id IS NULL AND NEW.deleted_at IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'apps', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'owned_apps', NEW.owner_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_apps_total_delete AFTER DELETE ON tc_apps WHEN OLD.editing_id IS NULL AND OLD.deleted_at IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'apps' AND part = '' AND slot = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'owned_apps' AND part = OLD.owner_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'owned_apps' AND part = OLD.owner_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_apps_total_from AFTER UPDATE OF editing_id, deleted_at, owner_id ON tc_apps WHEN (OLD.editing_id IS NOT NEW.editing_id OR OLD.deleted_at IS NOT NEW.deleted_at OR OLD.owner_id IS NOT NEW.owner_id) AND OLD.editing_id IS NULL AND OLD.deleted_at IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'apps' AND part = '' AND slot = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'owned_apps' AND part = OLD.owner_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'owned_apps' AND part = OLD.owner_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_apps_total_to AFTER UPDATE OF editing_id, deleted_at, owner_id ON tc_apps WHEN (OLD.editing_id IS NOT NEW.editing_id OR OLD.deleted_at IS NOT NEW.deleted_at OR OLD.owner_id IS NOT NEW.owner_id) AND NEW.editing_id IS NULL AND NEW.deleted_at IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'apps', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'owned_apps', NEW.owner_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'apps', '', 0, count(*) FROM tc_apps WHERE editing_id IS NULL AND deleted_at IS NULL GROUP BY tenant_id;
INSERT INTO tc_totals SELECT tenant_id, 'owned_apps', owner_id, 0, count(*) FROM tc_apps WHERE editing_id IS NULL AND deleted_at IS NULL GROUP BY tenant_id, owner_id;

CREATE TRIGGER tc_assistants_total_insert AFTER INSERT ON tc_assistants WHEN NEW.editing_id IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'assistants', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'owned_assistants', NEW.owner_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_assistants_total_delete AFTER DELETE ON tc_assistants WHEN OLD.editing_id IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'assistants' AND part = '' AND slot = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'owned_assistants' AND part = OLD.owner_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'owned_assistants' AND part = OLD.owner_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_assistants_total_from AFTER UPDATE OF editing_id, owner_id ON tc_assistants WHEN (OLD.editing_id IS NOT NEW.editing_id OR OLD.owner_id IS NOT NEW.owner_id) AND OLD.editing_id IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'assistants' AND part = '' AND slot = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'owned_assistants' AND part = OLD.owner_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'owned_assistants' AND part = OLD.owner_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_assistants_total_to AFTER UPDATE OF editing_id, owner_id ON tc_assistants WHEN (OLD.editing_id IS NOT NEW.editing_id OR OLD.owner_id IS NOT NEW.owner_id) AND NEW.editing_id IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'assistants', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'owned_assistants', NEW.owner_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'assistants', '', 0, count(*) FROM tc_assistants WHERE editing_id IS NULL GROUP BY tenant_id;
INSERT INTO tc_totals SELECT tenant_id, 'owned_assistants', owner_id, 0, count(*) FROM tc_assistants WHERE editing_id IS NULL GROUP BY tenant_id, owner_id;

CREATE TRIGGER tc_entities_total_insert AFTER INSERT ON tc_entities WHEN NEW.editing_id IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'entities', NEW.kind, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_entities_total_delete AFTER DELETE ON tc_entities WHEN OLD.editing_id IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'entities' AND part = OLD.kind AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'entities' AND part = OLD.kind AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_entities_total_from AFTER UPDATE OF kind, editing_id ON tc_entities WHEN (OLD.kind IS NOT NEW.kind OR OLD.editing_id IS NOT NEW.editing_id) AND OLD.editing_id IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'entities' AND part = OLD.kind AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'entities' AND part = OLD.kind AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_entities_total_to AFTER UPDATE OF kind, editing_id ON tc_entities WHEN (OLD.kind IS NOT NEW.kind OR OLD.editing_id IS NOT NEW.editing_id) AND NEW.editing_id IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'entities', NEW.kind, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'entities', kind, 0, count(*) FROM tc_entities WHERE editing_id IS NULL GROUP BY tenant_id, kind;

CREATE TRIGGER tc_library_files_total_insert AFTER INSERT ON tc_library_files BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'library_files', NEW.kind || '/' || NEW.library_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_library_files_total_delete AFTER DELETE ON tc_library_files BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'library_files' AND part = OLD.kind || '/' || OLD.library_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'library_files' AND part = OLD.kind || '/' || OLD.library_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_library_files_total_from AFTER UPDATE OF kind, library_id ON tc_library_files WHEN (OLD.kind IS NOT NEW.kind OR OLD.library_id IS NOT NEW.library_id) BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'library_files' AND part = OLD.kind || '/' || OLD.library_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'library_files' AND part = OLD.kind || '/' || OLD.library_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_library_files_total_to AFTER UPDATE OF kind, library_id ON tc_library_files WHEN (OLD.kind IS NOT NEW.kind OR OLD.library_id IS NOT NEW.library_id) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'library_files', NEW.kind || '/' || NEW.library_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'library_files', kind || '/' || library_id, 0, count(*) FROM tc_library_files GROUP BY tenant_id, kind || '/' || library_id;

CREATE TRIGGER tc_members_total_insert AFTER INSERT ON tc_memberships BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'members', NEW.team_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'memberships', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_members_total_delete AFTER DELETE ON tc_memberships BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'members' AND part = OLD.team_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'members' AND part = OLD.team_id AND slot = 0 AND n = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'memberships' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'memberships' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_members_total_from AFTER UPDATE OF team_id, username ON tc_memberships WHEN (OLD.team_id IS NOT NEW.team_id OR OLD.username IS NOT NEW.username) BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'members' AND part = OLD.team_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'members' AND part = OLD.team_id AND slot = 0 AND n = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'memberships' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'memberships' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_members_total_to AFTER UPDATE OF team_id, username ON tc_memberships WHEN (OLD.team_id IS NOT NEW.team_id OR OLD.username IS NOT NEW.username) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'members', NEW.team_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'memberships', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'members', team_id, 0, count(*) FROM tc_memberships GROUP BY tenant_id, team_id;
INSERT INTO tc_totals SELECT tenant_id, 'memberships', username, 0, count(*) FROM tc_memberships GROUP BY tenant_id, username;

CREATE TRIGGER tc_activities_total_insert AFTER INSERT ON tc_activities BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'activities', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'entity_activities', NEW.kind || '/' || NEW.entity_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_activities_total_delete AFTER DELETE ON tc_activities BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'activities' AND part = '' AND slot = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'entity_activities' AND part = OLD.kind || '/' || OLD.entity_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'entity_activities' AND part = OLD.kind || '/' || OLD.entity_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_activities_total_from AFTER UPDATE OF kind, entity_id ON tc_activities WHEN (OLD.kind IS NOT NEW.kind OR OLD.entity_id IS NOT NEW.entity_id) BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'activities' AND part = '' AND slot = 0;
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'entity_activities' AND part = OLD.kind || '/' || OLD.entity_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'entity_activities' AND part = OLD.kind || '/' || OLD.entity_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_activities_total_to AFTER UPDATE OF kind, entity_id ON tc_activities WHEN (OLD.kind IS NOT NEW.kind OR OLD.entity_id IS NOT NEW.entity_id) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'activities', '', 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'entity_activities', NEW.kind || '/' || NEW.entity_id, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'activities', '', 0, count(*) FROM tc_activities GROUP BY tenant_id;
INSERT INTO tc_totals SELECT tenant_id, 'entity_activities', kind || '/' || entity_id, 0, count(*) FROM tc_activities GROUP BY tenant_id, kind || '/' || entity_id;

CREATE TRIGGER tc_feed_total_insert AFTER INSERT ON tc_feed BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'feed', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_feed_total_delete AFTER DELETE ON tc_feed BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'feed' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'feed' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_feed_total_from AFTER UPDATE OF username ON tc_feed WHEN OLD.username IS NOT NEW.username BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'feed' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'feed' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_feed_total_to AFTER UPDATE OF username ON tc_feed WHEN OLD.username IS NOT NEW.username BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'feed', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'feed', username, 0, count(*) FROM tc_feed GROUP BY tenant_id, username;

CREATE TRIGGER tc_notifications_total_insert AFTER INSERT ON tc_notifications BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'notifications', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_notifications_total_delete AFTER DELETE ON tc_notifications BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'notifications' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'notifications' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_notifications_total_from AFTER UPDATE OF username ON tc_notifications WHEN OLD.username IS NOT NEW.username BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'notifications' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'notifications' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_notifications_total_to AFTER UPDATE OF username ON tc_notifications WHEN OLD.username IS NOT NEW.username BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'notifications', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_unread_notifications_total_insert AFTER INSERT ON tc_notifications WHEN NEW.read_at IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'unread_notifications', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER tc_unread_notifications_total_delete AFTER DELETE ON tc_notifications WHEN OLD.read_at IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'unread_notifications' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'unread_notifications' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_unread_notifications_total_from AFTER UPDATE OF username, read_at ON tc_notifications WHEN (OLD.username IS NOT NEW.username OR OLD.read_at IS NOT NEW.read_at) AND OLD.read_at IS NULL BEGIN
    UPDATE tc_totals SET n = n - 1 WHERE tenant_id = OLD.tenant_id AND list = 'unread_notifications' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'unread_notifications' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_unread_notifications_total_to AFTER UPDATE OF username, read_at ON tc_notifications WHEN (OLD.username IS NOT NEW.username OR OLD.read_at IS NOT NEW.read_at) AND NEW.read_at IS NULL BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'unread_notifications', NEW.username, 0, 1)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + 1;
END;
INSERT INTO tc_totals SELECT tenant_id, 'notifications', username, 0, count(*) FROM tc_notifications GROUP BY tenant_id, username;
INSERT INTO tc_totals SELECT tenant_id, 'unread_notifications', username, 0, count(*) FROM tc_notifications WHERE read_at IS NULL GROUP BY tenant_id, username;
