package domains

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// IsState reports whether a text has the form of a login's state, which a provider brings back.
func IsState(text string) bool {
	_, ok := begunAt(text)
	return ok
}

// FinishUnasked completes a login that has begun at a domain's provider: no browser has anything of
// it. back is what the provider wants to be opened then; it counts if it is a path of this service.
// An answer serves one login, whatever node it comes to. Otherwise it is as Finish. Errors:
// errs.Unauthenticated "Unable to log in", also where the domain does not allow such logins;
// errs.Upstream; errs.Unavailable.
func (u Unchecked) FinishUnasked(
	ctx context.Context, tenant, domain string, at Endpoints, back string, params url.Values,
) (done Finished, err error) {
	start := time.Now()
	ctx = entity.Begin(ctx, u.s.o.Observer, entity.LoginWork, "")
	var d Domain
	defer func() { u.s.observeLogin(ctx, tenant, d.Type, start, err) }()
	done.Tenant = tenant
	if back != "" && IsPath(back) {
		done.Return.To = back
	}
	leave, err := u.s.takePlace(ctx, place{tenant, domain})
	if err != nil {
		return done, err
	}
	defer leave()
	var login RedirectLogin
	if d, login, err = u.s.redirects(ctx, tenant, domain); err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			err = refusal(err)
		}
		return done, err
	}
	unasked, ok := login.(UnaskedLogin)
	if !ok {
		return done, refusal(errors.New("an answer that nobody asked for"))
	}
	who, id, until, err := unasked.Accept(ctx, at, Answer{Params: params})
	if err != nil {
		return done, hidden(err)
	}
	err = u.s.store.UseLogin(ctx, tenant, domain, hash("unasked "+domain+" "+id), until.Add(kept))
	if errs.CodeOf(err) == errs.Conflict {
		done.Fault, err = FaultUsed, refusal(errUsed)
	}
	if err != nil {
		return done, err
	}
	err = u.s.settle(ctx, d, who, &done)
	return done, err
}

// settle logs in a person whose answer has been checked, and sets the user and the session at the
// provider in done.
func (s *Service) settle(ctx context.Context, d Domain, who SignedIn, done *Finished) (err error) {
	if done.Session = who.Session; len(done.Session.Memory) > maxSessionMemory {
		return fmt.Errorf(
			"domains: the driver %s wants to know too much again at a logout: %d bytes", d.Type,
			len(done.Session.Memory),
		)
	}
	if done.User, err = s.signIn(ctx, d, who); err != nil {
		done.User = principals.User{Username: who.Username} // for the log
	}
	return hidden(err)
}

// begin starts a login at a provider, by a form where the realm can and the provider wants one.
func begin(
	ctx context.Context, login RedirectLogin, at Endpoints, state string,
) (location string, form url.Values, memory []byte, err error) {
	if forms, ok := login.(FormLogin); ok {
		return forms.BeginForm(ctx, at, state)
	}
	location, memory, err = login.Begin(ctx, at, state)
	return location, nil, memory, err
}
