package saml

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Bounds of messages about logouts.
const (
	maxNameID     = 2048 // bytes of a NameID with its qualifiers; the session of a longer one ends here alone
	maxIndex      = 1024 // bytes of a SessionIndex
	maxIndexes    = 100  // of a request
	maxRelayState = 1024 // bytes that go back to the provider
	// maxMessage is how many bytes one has, as much as all of these. Anybody can send one with a
	// bad signature, which takes a second to check in a megabyte.
	maxMessage = 128 << 10
	// maxLogout is how long a request is good after it was made, whatever its NotOnOrAfter: its id
	// is remembered as long.
	maxLogout = 5 * time.Minute
)

// sessionMemory is what a logout at the provider needs to know of a login.
type sessionMemory struct {
	Provider string         `json:"provider"` // entity id
	NameID   crewjam.NameID `json:"nameID"`
	Index    string         `json:"index,omitempty"`
}

// session returns the session at a provider that an assertion is of; none for a person without a
// NameID, whom no logout can name.
func (r *realm) session(p *provider, service string, a assertion) (domains.ProviderSession, error) {
	m := sessionMemory{Provider: p.entityID, NameID: nameID(a)}
	subject, ok := p.subject(service, m.NameID)
	if !ok {
		return domains.ProviderSession{}, nil
	}
	for _, s := range a.AuthnStatements {
		if m.Index == "" && len(s.SessionIndex) <= maxIndex {
			m.Index = s.SessionIndex
		}
	}
	kept, err := json.Marshal(m)
	return domains.ProviderSession{Subject: subject, ID: m.Index, Memory: kept}, err
}

// subject returns ProviderSession.Subject for a NameID. It reports false if there is none, or too
// long a one. Qualifiers that say what is said already count as those that are left out.
func (p *provider) subject(service string, id crewjam.NameID) (subject string, ok bool) {
	if id.Format == "" {
		id.Format = string(crewjam.UnspecifiedNameIDFormat)
	}
	if id.NameQualifier == p.entityID {
		id.NameQualifier = ""
	}
	if id.SPNameQualifier == service {
		id.SPNameQualifier = ""
	}
	text, err := json.Marshal([]string{p.entityID, id.Format, id.NameQualifier, id.SPNameQualifier, id.Value})
	return string(text), err == nil && id.Value != "" && len(text) <= maxNameID+len(p.entityID)
}

// BeginLogout implements domains.LogoutAtProvider, for providers that take requests by
// HTTP-Redirect.
func (r *realm) BeginLogout(
	ctx context.Context, at domains.Endpoints, session []byte, state string,
) (location string, memory []byte, err error) {
	location, form, memory, err := r.BeginFormLogout(ctx, at, session, state)
	if err == nil && form != nil {
		return "", nil, errs.New(errs.Upstream, "The provider takes requests by HTTP-POST alone.")
	}
	return location, memory, err
}

// BeginFormLogout implements domains.FormLogout: it returns the provider's address with a signed
// request to log the person of a session out. The request's id is what FinishLogout must know.
func (r *realm) BeginFormLogout(
	ctx context.Context, at domains.Endpoints, session []byte, state string,
) (location string, form url.Values, memory []byte, err error) {
	p, err := r.source.provider(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	var m sessionMemory
	if json.Unmarshal(session, &m) != nil || m.Provider != p.entityID || m.NameID.Value == "" ||
		p.logout.location == "" || r.keys.Current == nil {
		return "", nil, nil, nil // the session is another provider's, or this one has no logout
	}
	now := time.Now().UTC()
	ends := now.Add(maxLogout)
	request := crewjam.LogoutRequest{
		ID: newID(), IssueInstant: now, NotOnOrAfter: &ends, Version: version, Destination: p.logout.location,
		Issuer: &crewjam.Issuer{Value: r.service(at)}, NameID: &m.NameID,
	}
	if m.Index != "" {
		request.SessionIndex = &crewjam.SessionIndex{Value: m.Index}
	}
	location, form, err = message{"SAMLRequest", request.Element(), state, r.keys.Current}.to(p.logout)
	return location, form, []byte(request.ID), err
}

// FinishLogout implements domains.LogoutAtProvider. A response without a signature is taken, as
// some providers send it: it comes with the state of the browser that has begun the logout, and no
// session depends on it.
func (r *realm) FinishLogout(ctx context.Context, at domains.Endpoints, memory []byte, answer domains.Answer) error {
	return refusal(r.withProvider(ctx, func(p *provider) error {
		m, _, err := p.logoutMessage("SAMLResponse", answer, nil)
		switch {
		case err != nil:
			return err
		case m.XMLName.Local != "LogoutResponse":
			return fmt.Errorf("this is a %s instead of a LogoutResponse", m.XMLName.Local)
		case len(memory) == 0 || m.InResponseTo != string(memory):
			return fmt.Errorf("the response is to %q instead of %q", m.InResponseTo, memory)
		case m.Status.StatusCode.Value != crewjam.StatusSuccess:
			return refused(m.Status)
		}
		return m.check(p, at, time.Now())
	}))
}

// ReceiveLogout implements domains.LogoutReceiver: a request of the provider that a browser brings,
// which must be signed.
func (r *realm) ReceiveLogout(
	ctx context.Context, at domains.Endpoints, notice domains.Answer,
) (n domains.LogoutNotice, err error) {
	o := newOpener(r.keys)
	err = o.slowly(ctx, func() error {
		return r.withProvider(ctx, func(p *provider) error {
			m, signed, err := p.logoutMessage("SAMLRequest", notice, o)
			switch {
			case err != nil:
				return err
			case !signed:
				return errors.New("the request is not signed")
			case m.XMLName.Local != "LogoutRequest":
				return fmt.Errorf("this is a %s instead of a LogoutRequest", m.XMLName.Local)
			}
			if err := m.check(p, at, time.Now()); err != nil {
				return err
			}
			n, err = r.notice(p, at, m)
			return err
		})
	})
	if err != nil {
		return domains.LogoutNotice{}, refusal(err)
	}
	return n, nil
}

// notice returns what a request that has been checked means, and its answer.
func (r *realm) notice(p *provider, at domains.Endpoints, m logoutMessage) (n domains.LogoutNotice, err error) {
	subject, ok := p.subject(r.service(at), m.NameID)
	switch {
	case !ok:
		return n, errors.New("the request has no NameID, or a long one")
	case m.ID == "" || len(m.ID) > maxIndex:
		return n, errors.New("the request has no ID, or a long one")
	case len(m.Indexes) > maxIndexes:
		return n, fmt.Errorf("the request has more than %d SessionIndexes", maxIndexes)
	case len(m.relayState) > maxRelayState:
		return n, fmt.Errorf("the RelayState has more than %d bytes", maxRelayState)
	}
	n = domains.LogoutNotice{Subject: subject, Sessions: m.Indexes, ID: p.entityID + " " + m.ID, Until: m.until()}
	if p.loggedOut.location == "" || r.keys.Current == nil {
		return n, nil // nobody waits for an answer
	}
	response := crewjam.LogoutResponse{
		ID: newID(), InResponseTo: m.ID,
		Version: version, IssueInstant: time.Now().UTC(), Destination: p.loggedOut.location,
		Issuer: &crewjam.Issuer{Value: r.service(at)},
		Status: crewjam.Status{StatusCode: crewjam.StatusCode{Value: crewjam.StatusSuccess}},
	}
	n.Location, n.Form, err = message{"SAMLResponse", response.Element(), m.relayState, r.keys.Current}.to(p.loggedOut)
	return n, err
}

// logoutMessage is a LogoutRequest or LogoutResponse.
type logoutMessage struct {
	XMLName      xml.Name
	ID           string              `xml:"ID,attr"`
	Version      string              `xml:"Version,attr"`
	Destination  string              `xml:"Destination,attr"`
	InResponseTo string              `xml:"InResponseTo,attr"`
	IssueInstant crewjam.RelaxedTime `xml:"IssueInstant,attr"`
	Ends         crewjam.RelaxedTime `xml:"NotOnOrAfter,attr"`
	Issuer       crewjam.Issuer      `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	NameID       crewjam.NameID      `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	Indexes      []string            `xml:"urn:oasis:names:tc:SAML:2.0:protocol SessionIndex"`
	Status       crewjam.Status      `xml:"urn:oasis:names:tc:SAML:2.0:protocol Status"`
	relayState   string
}

// check checks what both must have.
func (m logoutMessage) check(p *provider, at domains.Endpoints, now time.Time) error {
	made := time.Time(m.IssueInstant)
	switch {
	case m.XMLName.Space != saml2 || m.Version != version:
		return fmt.Errorf("it is not of SAML 2.0, but of %q, version %q", m.XMLName.Space, m.Version)
	case m.Issuer.Value != p.entityID:
		return fmt.Errorf("it is of %q instead of %q", m.Issuer.Value, p.entityID)
	case m.Destination != at.SLO:
		return fmt.Errorf("it has the destination %q instead of %q", m.Destination, at.SLO)
	case made.After(now.Add(skew)):
		return fmt.Errorf("it is made at %s, which is in the future", made.Format(time.RFC3339))
	case !now.Before(m.until()):
		return fmt.Errorf(
			"it is made at %s and ends at %s, which is too long ago", made.Format(time.RFC3339),
			time.Time(m.Ends).Format(time.RFC3339),
		)
	}
	return nil
}

// until returns when the message is refused for its age.
func (m logoutMessage) until() time.Time {
	return earlier(time.Time(m.IssueInstant).Add(maxLogout), time.Time(m.Ends)).Add(skew)
}

// logoutMessage reads a message about a logout, and reports whether it is signed. A signature that
// is there must be good. o decrypts the NameID; nil if none is read.
func (p *provider) logoutMessage(
	parameter string, answer domains.Answer, o *opener,
) (m logoutMessage, signed bool, err error) {
	s := newShape()
	var el *etree.Element
	if answer.Query != "" {
		el, m.relayState, signed, err = p.fromQuery(parameter, answer.Query, s)
	} else {
		el, m.relayState, signed, err = p.fromForm(parameter, answer.Params, s)
	}
	if err != nil {
		return m, false, err
	}
	if o != nil && signed {
		if err := o.nameID(el, s); err != nil {
			return m, false, err
		}
	}
	text, err := documentOf(el)
	if err == nil {
		err = xml.Unmarshal(text, &m)
	}
	return m, signed, err
}

// fromForm reads a message of a form. What it returns is what an embedded signature covers.
func (p *provider) fromForm(
	parameter string, form url.Values, s *shape,
) (el *etree.Element, relayState string, signed bool, err error) {
	document, err := decodeParameter(parameter, form[parameter])
	if err == nil {
		err = short(document)
	}
	if err != nil {
		return nil, "", false, err
	}
	root, err := parse(document, s.see)
	if err != nil {
		return nil, "", false, fmt.Errorf("the %s cannot be taken: %w", parameter, err)
	}
	covered, err := p.verify(root)
	if err != nil || covered != nil {
		return covered, form.Get("RelayState"), true, err
	}
	return root, form.Get("RelayState"), false, nil
}

// fromQuery reads a message of a query, whose signature is over the query as it came.
func (p *provider) fromQuery(
	parameter, raw string, s *shape,
) (el *etree.Element, relayState string, signed bool, err error) {
	q, err := readQuery(parameter, raw)
	if err != nil {
		return nil, "", false, err
	}
	if q.signature != "" {
		if err := p.verifyQuery(q); err != nil {
			return nil, "", false, err
		}
	}
	document, err := q.document()
	if err == nil {
		err = short(document)
	}
	if err == nil {
		el, err = parse(document, s.see)
	}
	if err != nil {
		return nil, "", false, fmt.Errorf("the %s cannot be taken: %w", parameter, err)
	}
	return el, q.relayState, q.signature != "", nil
}

// short returns an error for a message about a logout that is too long.
func short(document []byte) error {
	if len(document) > maxMessage {
		return fmt.Errorf("it has %d bytes, more than %d", len(document), maxMessage)
	}
	return nil
}
