-- What is due for a sweep is found by its time, over all tenants.
DROP INDEX tc_sessions_expires;
CREATE INDEX tc_sessions_expires ON tc_sessions (expires_at, tenant_id);
DROP INDEX tc_uploads_expires;
CREATE INDEX tc_uploads_expires ON tc_uploads (expires_at, tenant_id);
DROP INDEX tc_downloads_expires;
CREATE INDEX tc_downloads_expires ON tc_downloads (expires_at, tenant_id);
DROP INDEX tc_blobs_incomplete;
CREATE INDEX tc_blobs_incomplete ON tc_blobs (created_at, tenant_id) WHERE NOT complete;
DROP INDEX tc_confirmations_expires;
CREATE INDEX tc_confirmations_expires ON tc_confirmations (expires_at, tenant_id);
DROP INDEX tc_domain_logins_expires;
CREATE INDEX tc_domain_logins_expires ON tc_domain_logins (expires_at, tenant_id);
DROP INDEX tc_login_networks_expires;
CREATE INDEX tc_login_networks_expires ON tc_login_networks (expires_at, tenant_id);
DROP INDEX tc_library_released_at;
CREATE INDEX tc_library_released_at ON tc_library_released (released_at, tenant_id);
DROP INDEX tc_handler_calls_day;
CREATE INDEX tc_handler_calls_day ON tc_handler_calls (day, tenant_id);
DROP INDEX tc_webhook_invocations_started;
CREATE INDEX tc_webhook_invocations_started ON tc_webhook_invocations (started_at, tenant_id);
DROP INDEX tc_webhook_requests_old;
CREATE INDEX tc_webhook_requests_old ON tc_webhook_requests (received_at, tenant_id);
DROP INDEX tc_webhook_days_day;
CREATE INDEX tc_webhook_days_day ON tc_webhook_days (day, tenant_id);
DROP INDEX tc_events_waiting;
CREATE INDEX tc_events_waiting ON tc_events (created_at, tenant_id) WHERE ended_at IS NULL;
DROP INDEX tc_messages_waiting;
CREATE INDEX tc_messages_waiting ON tc_messages (created_at, tenant_id) WHERE ended_at IS NULL;
CREATE INDEX tc_events_old ON tc_events (ended_at, tenant_id) WHERE ended_at IS NOT NULL;
CREATE INDEX tc_messages_old ON tc_messages (ended_at, tenant_id) WHERE ended_at IS NOT NULL;
CREATE INDEX tc_agent_runs_begun ON tc_agent_runs (created_at, tenant_id) WHERE ended_at IS NULL;
CREATE INDEX tc_agent_runs_old ON tc_agent_runs (ended_at, tenant_id) WHERE ended_at IS NOT NULL;
CREATE INDEX tc_jobs_old ON tc_jobs (ended_at, tenant_id) WHERE state = 'dead';
CREATE INDEX tc_activities_old ON tc_activities (created_at, tenant_id);
CREATE INDEX tc_notifications_old ON tc_notifications (created_at, tenant_id);
CREATE INDEX tc_notifications_app ON tc_notifications (created_at, tenant_id) WHERE type = 'app' AND state = 'delivered';

-- loose: perhaps no route has the program, or no app the workspace, any more. A sweep looks, and clears it of those that are in use.
ALTER TABLE tc_handler_programs ADD COLUMN loose boolean NOT NULL DEFAULT true;
DROP INDEX tc_handler_programs_used;
CREATE INDEX tc_handler_programs_used ON tc_handler_programs (used_at, tenant_id) WHERE loose;
CREATE FUNCTION tc_handler_routes_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tc_handler_programs SET loose = true WHERE tenant_id = OLD.tenant_id AND hash = OLD.hash;
    RETURN NULL;
END $$;
CREATE TRIGGER tc_handler_routes_delete AFTER DELETE ON tc_handler_routes FOR EACH ROW EXECUTE FUNCTION tc_handler_routes_delete();
ALTER TABLE tc_workspaces ADD COLUMN loose boolean NOT NULL DEFAULT true;
CREATE INDEX tc_workspaces_loose ON tc_workspaces (created_at, tenant_id) WHERE loose;
CREATE FUNCTION tc_apps_workspace_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tc_workspaces SET loose = true WHERE tenant_id = OLD.tenant_id AND app_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER tc_apps_workspace_delete AFTER DELETE ON tc_apps FOR EACH ROW EXECUTE FUNCTION tc_apps_workspace_delete();

-- Who does what one process at a time does, and when it was begun the last time that it was done to its end.
CREATE TABLE tc_leases (
    name    text COLLATE "C" PRIMARY KEY,
    holder  text NOT NULL,
    ends_at timestamptz(6) NOT NULL,
    done_at timestamptz(6)
);

-- A tenant that is being deleted or imported, and since when, is not served.
ALTER TABLE tc_tenants ADD COLUMN hidden text;
ALTER TABLE tc_tenants ADD COLUMN hidden_at timestamptz(6);
CREATE INDEX tc_tenants_hidden ON tc_tenants (hidden_at, tenant_id) WHERE hidden IS NOT NULL;
