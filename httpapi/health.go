package httpapi

// health serves GET /healthz: 200 while the process runs.
func (a *api) health(*request) (reply, error) {
	return ok(map[string]string{"status": "ok"})
}

// ready serves GET /readyz: 200 when the database answers and is migrated, else 503.
func (a *api) ready(r *request) (reply, error) {
	if err := a.Ready(r.Context()); err != nil {
		return reply{}, err
	}
	return ok(map[string]string{"status": "ready"})
}
