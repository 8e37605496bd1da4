package httpapi

import (
	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/view"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// visit is what a request has of the page of an app that it comes from or goes to, and of a caller
// who is not a user.
type visit struct {
	view        viewAddress           // that the path names; zero for none
	token       string                // the view token in the path, once it has been checked; "" for none
	claims      view.Claims           // of the token
	fromApp     bool                  // it is the call of a page or script of an app
	provisioner *sessions.Provisioner // a caller with a token of a domain; nil for everybody else
	// a caller without an account, in whose place the inviter is; nil for everybody else
	visitor *sessions.Visitor
}

// visitOf returns the visit of a request.
func visitOf(r *rest.Request) *visit {
	if r.Extra == nil { // a request without a route
		r.Extra = &visit{}
	}
	return r.Extra.(*visit)
}
