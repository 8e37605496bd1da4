-- What a token is for: the app that it shows to visitors. NULL for a personal token.
ALTER TABLE tc_tokens ADD COLUMN entity_kind text;
ALTER TABLE tc_tokens ADD COLUMN entity_id text;
CREATE INDEX tc_tokens_entity ON tc_tokens (tenant_id, entity_kind, entity_id, created_at, id) WHERE entity_kind IS NOT NULL;
