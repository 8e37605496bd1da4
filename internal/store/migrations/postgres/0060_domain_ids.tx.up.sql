-- The attributes of its directory that the ids of a domain's users and teams come from. NULL: not known yet.
ALTER TABLE tc_domains ADD COLUMN id_attribute text;
ALTER TABLE tc_domains ADD COLUMN group_id_attribute text;
