-- An index for each order of each list.
CREATE INDEX tc_colors_created ON tc_colors (tenant_id, created_at, key);
CREATE INDEX tc_colors_updated ON tc_colors (tenant_id, updated_at, key);
CREATE INDEX tc_bundle_entries_type ON tc_bundle_entries (tenant_id, bundle_id, type, id);
CREATE INDEX tc_bundle_entries_updated ON tc_bundle_entries (tenant_id, bundle_id, updated_at, id);
CREATE INDEX tc_notifications_read ON tc_notifications (tenant_id, username, created_at, id) WHERE read_at IS NOT NULL;
CREATE INDEX tc_ai_instructions_slug_id ON tc_ai_instructions (tenant_id, slug, id);
