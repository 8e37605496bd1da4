package saml

import (
	"errors"
	"fmt"
	"slices"
	"time"

	crewjam "github.com/crewjam/saml"
)

// expected has the values that a response must have.
type expected struct {
	provider string // entity id
	service  string // entity id
	acs      string // where it came
	request  string // id of the request that it answers
	unasked  bool   // it answers no request
	now      time.Time
}

// skew is how far the clocks of the provider and of this service may be apart.
const skew = 3 * time.Minute

// maxUnasked is the longest time for which an assertion that answers no request may be confirmed,
// so long its id is remembered, and how long after it was made it is taken.
const maxUnasked = time.Hour

// response checks the response around the assertion. It may be unsigned, so it can only lead to a
// refusal.
func (e expected) response(r crewjam.Response, signed bool) error {
	switch {
	case r.Status.StatusCode.Value != crewjam.StatusSuccess:
		return refused(r.Status)
	case r.Version != version:
		return fmt.Errorf("the response has the version %q", r.Version)
	case r.Destination != e.acs && (signed || r.Destination != ""):
		return fmt.Errorf("the response has the destination %q instead of %q", r.Destination, e.acs)
	case r.InResponseTo != e.request || (e.request == "") != e.unasked:
		return fmt.Errorf("the response is to %q instead of %q", r.InResponseTo, e.request)
	case r.Issuer != nil && r.Issuer.Value != e.provider:
		return fmt.Errorf("the response is of %q instead of %q", r.Issuer.Value, e.provider)
	}
	return e.made("response", r.IssueInstant)
}

// made checks when a response or assertion that answers no request was made: at most maxUnasked
// ago. Another one is bound to its request.
func (e expected) made(what string, at time.Time) error {
	switch {
	case !e.unasked:
		return nil
	case at.After(e.now.Add(skew)):
		return fmt.Errorf("the %s was made at %s, in the future (IssueInstant)", what, at)
	case !at.After(e.now.Add(-maxUnasked - skew)): // absent is zero, which is too long ago
		return fmt.Errorf("the %s was made at %s, longer ago than %v (IssueInstant)", what, at, maxUnasked)
	}
	return nil
}

// refused is the reason why a provider refused a login.
func refused(s crewjam.Status) error {
	inner, message := "", ""
	if s.StatusCode.StatusCode != nil {
		inner = s.StatusCode.StatusCode.Value
	}
	if s.StatusMessage != nil {
		message = s.StatusMessage.Value
	}
	return fmt.Errorf("the provider refused with status %q, %q, message %q", s.StatusCode.Value, inner, message)
}

// assertion checks a signed assertion. A missing value is an error.
func (e expected) assertion(a assertion) error {
	c := a.Conditions
	switch {
	case a.Version != version:
		return fmt.Errorf("the assertion has the version %q", a.Version)
	case a.Issuer.Value != e.provider:
		return fmt.Errorf("the assertion is of %q instead of %q", a.Issuer.Value, e.provider)
	case a.Subject == nil || c == nil:
		return errors.New("the assertion has no subject or no conditions")
	case len(a.AuthnStatements) == 0:
		return errors.New("the assertion says of nobody that they logged in")
	case c.NotBefore.After(e.now.Add(skew)):
		return fmt.Errorf("the assertion is not valid before %s", c.NotBefore)
	case !c.NotOnOrAfter.IsZero() && !e.now.Add(-skew).Before(c.NotOnOrAfter):
		return fmt.Errorf("the assertion was valid until %s", c.NotOnOrAfter)
	case len(a.audiences) == 0:
		return errors.New("the assertion has no audience")
	}
	for _, r := range a.audiences {
		if !slices.Contains(r.Audience, e.service) {
			return fmt.Errorf("the assertion is for %q instead of %q", r.Audience, e.service)
		}
	}
	if err := e.made("assertion", a.IssueInstant); err != nil {
		return err
	}
	if e.unasked && a.ID == "" {
		return errors.New("the assertion has no id")
	}
	return e.confirmed(a.Subject.SubjectConfirmations)
}

// bearer is the confirmation method of assertions whose bearer is their subject.
const bearer = "urn:oasis:names:tc:SAML:2.0:cm:bearer"

// confirmed checks that one of the confirmations is valid. It returns the error of the last one.
func (e expected) confirmed(all []crewjam.SubjectConfirmation) error {
	err := errors.New("the assertion has no bearer confirmation")
	for _, c := range all {
		if c.Method != bearer || c.SubjectConfirmationData == nil {
			continue
		}
		if err = e.confirmation(*c.SubjectConfirmationData); err == nil {
			return nil
		}
	}
	return err
}

func (e expected) confirmation(c crewjam.SubjectConfirmationData) error {
	switch {
	case c.InResponseTo != e.request:
		return fmt.Errorf("the assertion is in response to %q instead of %q", c.InResponseTo, e.request)
	case c.Recipient != e.acs:
		return fmt.Errorf("the assertion has the recipient %q instead of %q", c.Recipient, e.acs)
	case !e.now.Add(-skew).Before(c.NotOnOrAfter): // absent is zero, which is over
		return fmt.Errorf("the assertion was confirmed until %s", c.NotOnOrAfter)
	case c.NotBefore.After(e.now.Add(skew)):
		return fmt.Errorf("the assertion is not confirmed before %s", c.NotBefore)
	case e.unasked && c.NotOnOrAfter.After(e.now.Add(maxUnasked)):
		return fmt.Errorf("the assertion is confirmed until %s, which is longer than %v", c.NotOnOrAfter, maxUnasked)
	}
	return nil
}
