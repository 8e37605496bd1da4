package httpapi

import (
	"net/http"

	"github.com/tenantcontent/tenantcontent/errs"
)

// healthRoutes serves the checks of the process.
type healthRoutes struct{ *api }

// routes returns the rows of the route table.
func (a healthRoutes) routes() []Route {
	return []Route{
		{Method: get, Pattern: "/healthz", Name: "health", Grants: nothing, Public: true, AnyType: true, Summary: "The process runs", handle: a.health},
		{Method: get, Pattern: "/readyz", Name: "ready", Grants: nothing, Public: true, AnyType: true, Summary: "The database answers and is migrated", handle: a.ready},
	}
}

// health serves GET /healthz: 200 while the process runs.
func (a healthRoutes) health(*request) (reply, error) {
	return ok(map[string]string{"status": "ok"})
}

// notReady is the body of an answer of readyz that is 503: a problem, and whether anything can be
// written.
type notReady struct {
	problem
	Write  bool   `json:"write"`
	Reason string `json:"reason"`
}

func (a healthRoutes) notReady(r *request, err error) reply {
	status, message := plainProblem(err)
	if status == http.StatusInsufficientStorage { // 507 is an answer to a write
		status = http.StatusServiceUnavailable
	}
	return reply{status: status, body: notReady{problem{StatusCode: status, Error: http.StatusText(status), Message: message}, false, message}}
}

// ready serves GET /readyz: 200 when the database answers, is migrated and takes writes, else 503
// with the reason. With for=read, it does so also while the database takes no writes.
func (a healthRoutes) ready(r *request) (reply, error) {
	query, err := parseQuery(r.Request)
	if err != nil {
		return reply{}, err
	}
	of := query.Get("for")
	if of != "" && of != "read" && of != "write" {
		return reply{}, errs.New(errs.Invalid, "for: it must be read or write.")
	}
	if err := a.Ready(r.Context()); err != nil {
		return a.notReady(r, err), nil
	}
	if of != "read" && a.Writable != nil {
		if err := a.Writable(r.Context()); err != nil {
			return a.notReady(r, err), nil
		}
	}
	return ok(map[string]string{"status": "ready"})
}
