package httpapi

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

// refusedLogin is the error of a refused login that has been logged.
type refusedLogin struct {
	error
	attempt attempt // at a provider
}

func (r refusedLogin) Unwrap() error { return r.error }

// Logged marks the error for the engine, which logs others.
func (refusedLogin) Logged() {}

// refuseLogin logs why a login failed, as one line, and returns the error for the answer, which
// does not tell the reason. username is "" if it is not known, as after a login at a provider.
// Internal errors are logged by fail instead.
func (a loginFlow) refuseLogin(r *rest.Request, tenant, domain, username string, err error) error {
	reason := err
	if e := new(errs.Error); errors.As(err, &e) && e.Code == errs.Unauthenticated && e.Cause != nil {
		reason = e.Cause
	}
	a.Log.InfoContext(r.Context(), "login refused", "reason", logged(reason.Error(), 512), "tenant",
		logged(tenant, 256), "domain", logged(domain, 256),
		"username", logged(username, 256), "request",
		actor.OriginOf(r.Context()).Request, "client", rest.ClientOf(r.Request))
	return refusedLogin{error: err}
}

// logged returns text from a caller for the log: at most most bytes, without control characters.
func logged(text string, most int) string {
	for end := most; len(text) > most; end-- {
		if utf8.RuneStart(text[end]) {
			text = text[:end] + "…"
			break
		}
	}
	for _, c := range text {
		if c == utf8.RuneError || !strconv.IsPrint(c) {
			quoted := strconv.Quote(text)
			return quoted[1 : len(quoted)-1]
		}
	}
	return text
}
