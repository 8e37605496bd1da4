-- Calls of server routes that failed or have logged something are recorded beside those of webhooks.
ALTER TABLE tc_webhook_invocations ADD COLUMN area text COLLATE "C" NOT NULL DEFAULT 'webhooks';
DROP INDEX tc_webhook_invocations_recent;
DROP INDEX tc_webhook_invocations_route;
CREATE INDEX tc_webhook_invocations_recent ON tc_webhook_invocations (tenant_id, app_id, area, started_at, id);
CREATE INDEX tc_webhook_invocations_route ON tc_webhook_invocations (tenant_id, app_id, area, method, path, started_at, id);
