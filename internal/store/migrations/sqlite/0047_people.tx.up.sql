-- What refers to a user or team is found when they are deleted or renamed, however much a tenant has.
CREATE INDEX tc_messages_recipient ON tc_messages (tenant_id, recipient) WHERE type = 'notification';
CREATE INDEX tc_messages_user ON tc_messages (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX tc_events_user ON tc_events (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX tc_agent_runs_user ON tc_agent_runs (tenant_id, user_id) WHERE user_id IS NOT NULL;
-- Whether an app or assistant is shared is looked up among its own shares.
CREATE INDEX tc_app_shares_used ON tc_app_shares (tenant_id, entity_id, access_level);
CREATE INDEX tc_assistant_shares_used ON tc_assistant_shares (tenant_id, entity_id, access_level);
