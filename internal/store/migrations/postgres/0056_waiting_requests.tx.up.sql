-- Whether the handler has yet to run with the request: it is not removed to make room for others then.
ALTER TABLE tc_webhook_requests ADD COLUMN waiting boolean NOT NULL DEFAULT false;
