-- The manifest of an app that was deployed is that of its last deploy: a file in a library of the kind app-manifest, with the id of the app's library.
INSERT INTO tc_library_files (tenant_id, kind, library_id, path, folded, content_id, sha256, size, content_type, created_at, updated_at)
    SELECT f.tenant_id, 'app-manifest', f.library_id, f.path, f.folded, f.content_id, f.sha256, f.size, f.content_type, f.created_at, f.updated_at
    FROM tc_apps a JOIN tc_library_files f ON f.tenant_id = a.tenant_id AND f.kind = 'app' AND f.library_id = a.library_id
    WHERE a.deployed_at IS NOT NULL AND a.editing_id IS NULL AND (f.path = 'informer.yaml' OR f.path = 'app.yaml' AND NOT EXISTS (
        SELECT 1 FROM tc_library_files o WHERE o.tenant_id = f.tenant_id AND o.kind = 'app' AND o.library_id = f.library_id AND o.path = 'informer.yaml'));
