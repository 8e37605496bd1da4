-- How many bytes a tenant stores: the list storage of tc_totals, with a part each for files, records and workspaces, kept as the totals of lists are. A record
-- counts the texts that tenants choose the length of, and 256 bytes; small rows such as users and colors are not counted.
ALTER TABLE tc_tenants ADD COLUMN quota integer; -- bytes; NULL: as many as the server allows
ALTER TABLE tc_tenants ADD COLUMN max_workspaces integer; -- NULL: as many as the server allows
ALTER TABLE tc_workspaces ADD COLUMN bytes integer NOT NULL DEFAULT 0; -- as it was measured last

CREATE TRIGGER tc_blob_chunks_storage_insert AFTER INSERT ON tc_blob_chunks BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'files', 0, octet_length(NEW.bytes))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_blob_chunks_storage_delete AFTER DELETE ON tc_blob_chunks BEGIN
    UPDATE tc_totals SET n = n - octet_length(OLD.bytes) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'files' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'files' AND slot = 0 AND n = 0;
END;

CREATE TRIGGER tc_workspaces_storage_insert AFTER INSERT ON tc_workspaces BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) SELECT NEW.tenant_id, 'storage', 'workspaces', 0, NEW.bytes WHERE NEW.bytes > 0
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_workspaces_storage_delete AFTER DELETE ON tc_workspaces BEGIN
    UPDATE tc_totals SET n = n - OLD.bytes WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'workspaces' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'workspaces' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_workspaces_storage_update AFTER UPDATE OF bytes ON tc_workspaces WHEN OLD.bytes <> NEW.bytes BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'workspaces', 0, NEW.bytes - OLD.bytes)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
    DELETE FROM tc_totals WHERE tenant_id = NEW.tenant_id AND list = 'storage' AND part = 'workspaces' AND slot = 0 AND n = 0;
END;

CREATE TRIGGER tc_agent_runs_storage_insert AFTER INSERT ON tc_agent_runs BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_agent_runs_storage_delete AFTER DELETE ON tc_agent_runs BEGIN
    UPDATE tc_totals SET n = n - (256 + OLD.size) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_agent_runs_storage_update AFTER UPDATE OF size ON tc_agent_runs WHEN 256 + OLD.size <> 256 + NEW.size BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size - (256 + OLD.size))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_agents_storage_insert AFTER INSERT ON tc_agents BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.definition) + octet_length(NEW.overrides))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_agents_storage_delete AFTER DELETE ON tc_agents BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.definition) + octet_length(OLD.overrides)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_agents_storage_update AFTER UPDATE OF definition, overrides ON tc_agents WHEN 256 + octet_length(OLD.definition) + octet_length(OLD.overrides) <> 256 + octet_length(NEW.definition) + octet_length(NEW.overrides) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.definition) + octet_length(NEW.overrides) - (256 + octet_length(OLD.definition) + octet_length(OLD.overrides)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_ai_instructions_storage_insert AFTER INSERT ON tc_ai_instructions BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.content))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_ai_instructions_storage_delete AFTER DELETE ON tc_ai_instructions BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.content)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_ai_instructions_storage_update AFTER UPDATE OF content ON tc_ai_instructions WHEN 256 + octet_length(OLD.content) <> 256 + octet_length(NEW.content) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.content) - (256 + octet_length(OLD.content)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_apps_storage_insert AFTER INSERT ON tc_apps BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 512 + octet_length(NEW.defn) + octet_length(NEW.settings) + coalesce(octet_length(NEW.env_sealed), 0))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_apps_storage_delete AFTER DELETE ON tc_apps BEGIN
    UPDATE tc_totals SET n = n - (512 + octet_length(OLD.defn) + octet_length(OLD.settings) + coalesce(octet_length(OLD.env_sealed), 0)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_apps_storage_update AFTER UPDATE OF defn, settings, env_sealed ON tc_apps WHEN 512 + octet_length(OLD.defn) + octet_length(OLD.settings) + coalesce(octet_length(OLD.env_sealed), 0) <> 512 + octet_length(NEW.defn) + octet_length(NEW.settings) + coalesce(octet_length(NEW.env_sealed), 0) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 512 + octet_length(NEW.defn) + octet_length(NEW.settings) + coalesce(octet_length(NEW.env_sealed), 0) - (512 + octet_length(OLD.defn) + octet_length(OLD.settings) + coalesce(octet_length(OLD.env_sealed), 0)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_assistants_storage_insert AFTER INSERT ON tc_assistants BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 512 + octet_length(NEW.instructions) + octet_length(NEW.data) + octet_length(NEW.skills))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_assistants_storage_delete AFTER DELETE ON tc_assistants BEGIN
    UPDATE tc_totals SET n = n - (512 + octet_length(OLD.instructions) + octet_length(OLD.data) + octet_length(OLD.skills)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_assistants_storage_update AFTER UPDATE OF instructions, data, skills ON tc_assistants WHEN 512 + octet_length(OLD.instructions) + octet_length(OLD.data) + octet_length(OLD.skills) <> 512 + octet_length(NEW.instructions) + octet_length(NEW.data) + octet_length(NEW.skills) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 512 + octet_length(NEW.instructions) + octet_length(NEW.data) + octet_length(NEW.skills) - (512 + octet_length(OLD.instructions) + octet_length(OLD.data) + octet_length(OLD.skills)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_bundle_entries_storage_insert AFTER INSERT ON tc_bundle_entries BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.data))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_bundle_entries_storage_delete AFTER DELETE ON tc_bundle_entries BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.data)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_bundle_entries_storage_update AFTER UPDATE OF data ON tc_bundle_entries WHEN 256 + octet_length(OLD.data) <> 256 + octet_length(NEW.data) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.data) - (256 + octet_length(OLD.data)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_comments_storage_insert AFTER INSERT ON tc_comments BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.message))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_comments_storage_delete AFTER DELETE ON tc_comments BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.message)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_comments_storage_update AFTER UPDATE OF message ON tc_comments WHEN 256 + octet_length(OLD.message) <> 256 + octet_length(NEW.message) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.message) - (256 + octet_length(OLD.message)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_entities_storage_insert AFTER INSERT ON tc_entities BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.data) + coalesce(octet_length(NEW.description), 0))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_entities_storage_delete AFTER DELETE ON tc_entities BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.data) + coalesce(octet_length(OLD.description), 0)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_entities_storage_update AFTER UPDATE OF data, description ON tc_entities WHEN 256 + octet_length(OLD.data) + coalesce(octet_length(OLD.description), 0) <> 256 + octet_length(NEW.data) + coalesce(octet_length(NEW.description), 0) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.data) + coalesce(octet_length(NEW.description), 0) - (256 + octet_length(OLD.data) + coalesce(octet_length(OLD.description), 0)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_events_storage_insert AFTER INSERT ON tc_events BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_events_storage_delete AFTER DELETE ON tc_events BEGIN
    UPDATE tc_totals SET n = n - (256 + OLD.size) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_events_storage_update AFTER UPDATE OF size ON tc_events WHEN 256 + OLD.size <> 256 + NEW.size BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size - (256 + OLD.size))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_handler_deployments_storage_insert AFTER INSERT ON tc_handler_deployments BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.sources))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_handler_deployments_storage_delete AFTER DELETE ON tc_handler_deployments BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.sources)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_handler_deployments_storage_update AFTER UPDATE OF sources ON tc_handler_deployments WHEN 256 + octet_length(OLD.sources) <> 256 + octet_length(NEW.sources) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.sources) - (256 + octet_length(OLD.sources)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_handler_programs_storage_insert AFTER INSERT ON tc_handler_programs BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.code) + octet_length(NEW.map))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_handler_programs_storage_delete AFTER DELETE ON tc_handler_programs BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.code) + octet_length(OLD.map)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_handler_programs_storage_update AFTER UPDATE OF code, map ON tc_handler_programs WHEN 256 + octet_length(OLD.code) + octet_length(OLD.map) <> 256 + octet_length(NEW.code) + octet_length(NEW.map) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.code) + octet_length(NEW.map) - (256 + octet_length(OLD.code) + octet_length(OLD.map)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_messages_storage_insert AFTER INSERT ON tc_messages BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_messages_storage_delete AFTER DELETE ON tc_messages BEGIN
    UPDATE tc_totals SET n = n - (256 + OLD.size) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_messages_storage_update AFTER UPDATE OF size ON tc_messages WHEN 256 + OLD.size <> 256 + NEW.size BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size - (256 + OLD.size))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_webhook_invocations_storage_insert AFTER INSERT ON tc_webhook_invocations BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.logs) + coalesce(octet_length(NEW.error), 0))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_webhook_invocations_storage_delete AFTER DELETE ON tc_webhook_invocations BEGIN
    UPDATE tc_totals SET n = n - (256 + octet_length(OLD.logs) + coalesce(octet_length(OLD.error), 0)) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_webhook_invocations_storage_update AFTER UPDATE OF logs, error ON tc_webhook_invocations WHEN 256 + octet_length(OLD.logs) + coalesce(octet_length(OLD.error), 0) <> 256 + octet_length(NEW.logs) + coalesce(octet_length(NEW.error), 0) BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + octet_length(NEW.logs) + coalesce(octet_length(NEW.error), 0) - (256 + octet_length(OLD.logs) + coalesce(octet_length(OLD.error), 0)))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

CREATE TRIGGER tc_webhook_requests_storage_insert AFTER INSERT ON tc_webhook_requests BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size)
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_webhook_requests_storage_delete AFTER DELETE ON tc_webhook_requests BEGIN
    UPDATE tc_totals SET n = n - (256 + OLD.size) WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'storage' AND part = 'records' AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_webhook_requests_storage_update AFTER UPDATE OF size ON tc_webhook_requests WHEN 256 + OLD.size <> 256 + NEW.size BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'storage', 'records', 0, 256 + NEW.size - (256 + OLD.size))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;

INSERT INTO tc_totals SELECT tenant_id, 'storage', 'files', 0, sum(octet_length(bytes)) FROM tc_blob_chunks GROUP BY tenant_id;
INSERT INTO tc_totals SELECT tenant_id, 'storage', 'records', 0, sum(n) FROM (
    SELECT tenant_id, 256 + size AS n FROM tc_agent_runs
    UNION ALL SELECT tenant_id, 256 + octet_length(definition) + octet_length(overrides) AS n FROM tc_agents
    UNION ALL SELECT tenant_id, 256 + octet_length(content) AS n FROM tc_ai_instructions
    UNION ALL SELECT tenant_id, 512 + octet_length(defn) + octet_length(settings) + coalesce(octet_length(env_sealed), 0) AS n FROM tc_apps
    UNION ALL SELECT tenant_id, 512 + octet_length(instructions) + octet_length(data) + octet_length(skills) AS n FROM tc_assistants
    UNION ALL SELECT tenant_id, 256 + octet_length(data) AS n FROM tc_bundle_entries
    UNION ALL SELECT tenant_id, 256 + octet_length(message) AS n FROM tc_comments
    UNION ALL SELECT tenant_id, 256 + octet_length(data) + coalesce(octet_length(description), 0) AS n FROM tc_entities
    UNION ALL SELECT tenant_id, 256 + size AS n FROM tc_events
    UNION ALL SELECT tenant_id, 256 + octet_length(sources) AS n FROM tc_handler_deployments
    UNION ALL SELECT tenant_id, 256 + octet_length(code) + octet_length(map) AS n FROM tc_handler_programs
    UNION ALL SELECT tenant_id, 256 + size AS n FROM tc_messages
    UNION ALL SELECT tenant_id, 256 + octet_length(logs) + coalesce(octet_length(error), 0) AS n FROM tc_webhook_invocations
    UNION ALL SELECT tenant_id, 256 + size AS n FROM tc_webhook_requests
) AS kept GROUP BY tenant_id;
