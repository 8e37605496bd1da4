-- How many bytes the files of each user have, as a list of tc_totals whose part is the user and whose number is a sum.
CREATE TRIGGER tc_uploads_bytes_insert AFTER INSERT ON tc_uploads BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) SELECT NEW.tenant_id, 'upload_bytes', NEW.username, 0, NEW.size WHERE NEW.size > 0
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_uploads_bytes_delete AFTER DELETE ON tc_uploads BEGIN
    UPDATE tc_totals SET n = n - OLD.size WHERE tenant_id = OLD.tenant_id AND list = 'upload_bytes' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'upload_bytes' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_uploads_bytes_update AFTER UPDATE OF username, size ON tc_uploads BEGIN
    UPDATE tc_totals SET n = n - OLD.size WHERE tenant_id = OLD.tenant_id AND list = 'upload_bytes' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'upload_bytes' AND part = OLD.username AND slot = 0 AND n = 0;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) SELECT NEW.tenant_id, 'upload_bytes', NEW.username, 0, NEW.size WHERE NEW.size > 0
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
INSERT INTO tc_totals SELECT tenant_id, 'upload_bytes', username, 0, sum(size) FROM tc_uploads GROUP BY tenant_id, username HAVING sum(size) > 0;
CREATE TRIGGER tc_downloads_bytes_insert AFTER INSERT ON tc_downloads BEGIN
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) SELECT NEW.tenant_id, 'download_bytes', NEW.username, 0, NEW.size WHERE NEW.size > 0
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
CREATE TRIGGER tc_downloads_bytes_delete AFTER DELETE ON tc_downloads BEGIN
    UPDATE tc_totals SET n = n - OLD.size WHERE tenant_id = OLD.tenant_id AND list = 'download_bytes' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'download_bytes' AND part = OLD.username AND slot = 0 AND n = 0;
END;
CREATE TRIGGER tc_downloads_bytes_update AFTER UPDATE OF username, size ON tc_downloads BEGIN
    UPDATE tc_totals SET n = n - OLD.size WHERE tenant_id = OLD.tenant_id AND list = 'download_bytes' AND part = OLD.username AND slot = 0;
    DELETE FROM tc_totals WHERE tenant_id = OLD.tenant_id AND list = 'download_bytes' AND part = OLD.username AND slot = 0 AND n = 0;
    INSERT INTO tc_totals (tenant_id, list, part, slot, n) SELECT NEW.tenant_id, 'download_bytes', NEW.username, 0, NEW.size WHERE NEW.size > 0
        ON CONFLICT (tenant_id, list, part, slot) DO UPDATE SET n = n + excluded.n;
END;
INSERT INTO tc_totals SELECT tenant_id, 'download_bytes', username, 0, sum(size) FROM tc_downloads GROUP BY tenant_id, username HAVING sum(size) > 0;
