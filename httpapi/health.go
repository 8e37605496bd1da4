package httpapi

import (
	"net/http"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/errs"
)

// healthRoutes serves the checks of the process.
type healthRoutes struct{ *api }

// routes returns the rows of the route table.
func (a healthRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/healthz",
			Name:    "health",
			Grants:  nothing,
			Public:  true,
			AnyType: true,
			Summary: "The process runs",
			Gives:   openapi.OK(openapi.One[healthBody]()),
			Handle:  a.health,
		},
		{
			Method:  get,
			Pattern: "/readyz",
			Name:    "ready",
			Grants:  nothing,
			Public:  true,
			AnyType: true,
			Reads:   []string{"for"},
			Summary: "The database answers and is migrated",
			Gives:   openapi.OK(openapi.One[readiness]()),
			Handle:  a.ready,
		},
	}
}

// healthBody is the answer of a process that runs.
type healthBody struct {
	Status string `json:"status" enum:"ok"`
}

// health serves GET /healthz: 200 while the process runs.
func (a healthRoutes) health(*rest.Request) (rest.Reply, error) {
	return rest.OK(healthBody{"ok"})
}

// readiness is the body of an answer of readyz that is 200.
type readiness struct {
	Status   string   `json:"status" enum:"ready"`
	Warnings []string `json:"warnings,omitempty"` // what an operator is to mend
}

// notReady is the body of an answer of readyz that is 503: a problem, and whether anything can be
// written.
type notReady struct {
	rest.Problem
	Write  bool   `json:"write"`
	Reason string `json:"reason"`
}

func (a healthRoutes) notReady(r *rest.Request, err error) rest.Reply {
	status, message := rest.PlainProblem(err)
	if status == http.StatusInsufficientStorage { // 507 is an answer to a write
		status = http.StatusServiceUnavailable
	}
	return rest.Reply{
		Status: status,
		Body: notReady{
			rest.Problem{StatusCode: status, Error: http.StatusText(status), Message: message}, false, message,
		},
	}
}

// ready serves GET /readyz: 200 when the database answers, is migrated and takes writes, else 503
// with the reason. With for=read, it does so also while the database takes no writes.
func (a healthRoutes) ready(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	of := query.Get("for")
	if of != "" && of != "read" && of != "write" {
		return rest.Reply{}, errs.New(errs.Invalid, "for: it must be read or write.")
	}
	if err := a.Ready(r.Context()); err != nil {
		return a.notReady(r, err), nil
	}
	if of != "read" && a.Writable != nil {
		if err := a.Writable(r.Context()); err != nil {
			return a.notReady(r, err), nil
		}
	}
	answer := readiness{Status: "ready"}
	if a.Warnings != nil {
		answer.Warnings = a.Warnings()
	}
	return rest.OK(answer)
}
