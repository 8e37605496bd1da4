package domains

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/tenantcontent/tenantcontent/errs"
)

// logoutColumn is the column that a pending logout is sealed for, as pendingColumn.
const logoutColumn = "logout"

// maxSessionMemory is the most bytes of ProviderSession.Memory.
const maxSessionMemory = 16 << 10

// BeginLogout starts a logout at a domain's provider. session is the ProviderSession.Memory of the
// login, and returnTo a path at this service where the browser goes in the end, "" for none.
// Started.Location is "" if the domain or its provider has no logout. Errors: errs.Invalid for
// another returnTo, and for one that is too long; errs.Upstream.
func (u Unchecked) BeginLogout(
	ctx context.Context, tenant, domain string, at Endpoints, session []byte, returnTo string,
) (Started, error) {
	if !IsPath(returnTo) {
		return Started{}, errs.New(errs.Invalid, "returnTo must be a path of this service, such as /apps")
	}
	d, login, err := u.s.redirects(ctx, tenant, domain)
	if errs.CodeOf(err) == errs.NotFound {
		return Started{}, nil // the domain has changed since
	}
	if err != nil {
		return Started{}, err
	}
	realm, ok := login.(LogoutAtProvider)
	if !ok {
		return Started{}, nil
	}
	begun := Started{State: u.s.o.NewSecret(), Ends: u.s.clock.Stamp().Add(loginTimeout)}
	var memory []byte
	if begun.Location, begun.Form, memory, err = beginLogout(ctx, realm, at, session, begun.State); err != nil ||
		begun.Location == "" {
		return Started{}, hidden(err)
	}
	plain, err := json.Marshal(pending{Domain: d.ID, Memory: memory, ReturnTo: returnTo, Ends: begun.Ends})
	if err == nil {
		begun.Browser, err = u.s.sealer.Seal(tenant, pendingTable, logoutColumn, hash(begun.State), plain)
	}
	if err == nil && len(begun.Browser) > maxPending {
		err = errs.New(errs.Invalid, "returnTo is too long for a logout at this domain")
	}
	if err != nil {
		return Started{}, err
	}
	return begun, nil
}

// beginLogout begins a logout at a provider, by a form where the realm can and the provider wants
// one.
func beginLogout(
	ctx context.Context, realm LogoutAtProvider, at Endpoints, session []byte, state string,
) (location string, form url.Values, memory []byte, err error) {
	if forms, ok := realm.(FormLogout); ok {
		return forms.BeginFormLogout(ctx, at, session, state)
	}
	location, memory, err = realm.BeginLogout(ctx, at, session, state)
	return location, nil, memory, err
}

// pendingLogout opens the sealed logout that a browser has kept.
func (s *Service) pendingLogout(tenant, state, browser string) (p pending, err error) {
	if len(browser) > maxPending || len(state) > maxState {
		return p, errors.New("the state or its cookie is too long")
	}
	plain, err := s.sealer.Open(tenant, pendingTable, logoutColumn, hash(state), browser)
	if err == nil {
		err = json.Unmarshal(plain, &p)
	}
	return p, err
}

// FinishLogout checks what the provider sends after a logout that BeginLogout started, and returns
// where the browser goes. answer.State and browser are as for Finish. It returns
// errs.Unauthenticated with the reason for an answer that no logout of this browser waits for, and
// errs.Unavailable as ReceiveLogout: the session has ended all the same.
func (u Unchecked) FinishLogout(
	ctx context.Context, tenant, domain string, at Endpoints, browser string, answer Answer,
) (returnTo string, err error) {
	p, err := u.s.pendingLogout(tenant, answer.State, browser)
	switch {
	case err != nil:
	case p.Domain != domain:
		err = errors.New("the logout is of another domain")
	case !u.s.clock.Now().Before(p.Ends):
		err = errors.New("the logout took too long")
	}
	if err != nil {
		return "", refusal(err)
	}
	_, login, err := u.s.redirects(ctx, tenant, domain)
	if err != nil {
		return "", refusal(err)
	}
	realm, ok := login.(LogoutAtProvider)
	if !ok {
		return "", refusal(fmt.Errorf("the domain %s has no logout any more", domain))
	}
	leave, err := u.s.takePlace(ctx, place{tenant, domain + "/logout"}) // as a browser may send it often
	if err != nil {
		return "", err
	}
	defer leave()
	return p.ReturnTo, realm.FinishLogout(ctx, at, p.Memory, answer)
}

// ReceiveLogout checks the notice of a domain's provider that a person has logged out there, and
// calls end with it in one transaction with the record of its use, so that it is used once, by
// whichever process. At most 8 of a domain and 12 of a tenant run at once, beside logins. Errors:
// errs.NotFound for a domain without such notices; errs.Unauthenticated with the reason;
// errs.Upstream; errs.Unavailable.
func (u Unchecked) ReceiveLogout(ctx context.Context, tenant, domain string, at Endpoints, notice Answer,
	end func(ctx context.Context, n LogoutNotice) error) (LogoutNotice, error) {
	_, login, err := u.s.redirects(ctx, tenant, domain)
	if err != nil {
		return LogoutNotice{}, err
	}
	realm, ok := login.(LogoutReceiver)
	if !ok {
		return LogoutNotice{}, errNoSSO(errs.New(
			errs.Invalid, "The provider of the domain %s sends no notices.", domain,
		))
	}
	leave, err := u.s.takePlace(ctx, place{tenant, domain + "/logout"}) // an id has no slash
	if err != nil {
		return LogoutNotice{}, err
	}
	defer leave()
	n, err := realm.ReceiveLogout(ctx, at, notice)
	if err != nil {
		return LogoutNotice{}, err
	}
	err = u.s.store.InTx(ctx, func(ctx context.Context) error {
		err := u.s.store.UseLogin(ctx, tenant, domain, hash("logout "+n.ID), n.Until.Add(kept))
		if errs.CodeOf(err) == errs.Conflict {
			err = refusal(errors.New("the notice was used before"))
		}
		if err != nil {
			return err
		}
		return end(ctx, n)
	})
	return n, err
}
