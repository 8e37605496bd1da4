-- The key pairs of a domain whose driver signs and decrypts, sealed; NULL for none.
ALTER TABLE tc_domains ADD COLUMN keys_sealed text;
