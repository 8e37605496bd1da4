package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// observe tells the Observer of a request that has been answered, or whose client is gone.
func (a *api) observe(w *rest.Response, r *http.Request, start time.Time) {
	o := entity.Observation{
		Work:    entity.RequestWork,
		Status:  w.Status,
		Outcome: cmp.Or(string(w.Code), entity.OK),
		Start:   start,
	}
	if w.Route != nil {
		o.Kind = w.Route.Method + " " + w.Route.Pattern
	}
	if w.Who != nil {
		o.Tenant = w.Who.Tenant
	}
	switch {
	case rest.ClientGone(r):
		o.Status, o.Outcome = rest.StatusClientGone, string(errs.Canceled)
	case w.Failure != nil: // the answer was cut
		o.Outcome = string(errs.CodeOf(w.Failure))
	}
	entity.Observe(r.Context(), a.Observer, o)
}
