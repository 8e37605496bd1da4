-- How many bytes the data of a bundle's entries has, kept as the totals of lists are.
CREATE TRIGGER tc_bundle_data_total_insert AFTER INSERT ON tc_bundle_entries BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) VALUES (NEW.tenant_id, 'bundle_data', NEW.bundle_id, 0, octet_length(NEW.data))
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_bundle_data_total_delete AFTER DELETE ON tc_bundle_entries BEGIN
    UPDATE tc_totals SET n = n - octet_length(OLD.data) WHERE tenant_id = OLD.tenant_id AND list = 'bundle_data' AND part = OLD.bundle_id AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'bundle_data' AND part = OLD.bundle_id AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_bundle_data_total_update AFTER UPDATE OF data ON tc_bundle_entries BEGIN
    UPDATE tc_totals SET n = n - octet_length(OLD.data) + octet_length(NEW.data)
        WHERE tenant_id = NEW.tenant_id AND list = 'bundle_data' AND part = NEW.bundle_id AND slot = 0;
END;
INSERT INTO tc_totals SELECT tenant_id, 'bundle_data', bundle_id, 0, sum(octet_length(data)) FROM tc_bundle_entries GROUP BY tenant_id, bundle_id;
