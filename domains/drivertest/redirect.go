package drivertest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

func testRedirect(t *testing.T, f *fixture) {
	login, ok := f.open(f.Config).(domains.RedirectLogin)
	if !ok {
		return
	}
	ctx := t.Context()
	const state, other = "acme.first-state", "acme.second-state"
	location, memory, err := login.Begin(ctx, f.Endpoints, state)
	f.noErr(err, "Begin")
	u, err := url.Parse(location)
	f.noErr(err, "reading the address of Begin")
	f.true(u.Host != "" && (u.Scheme == "https" ||
		u.Scheme == "http"), "Begin returned the address %s, which is not one of http or https", location)
	f.true(
		strings.Contains(u.RawQuery, url.QueryEscape(state)),
		"Begin returned the address %s, whose query lacks the state %s", location, state,
	)
	otherLocation, otherMemory, err := login.Begin(ctx, f.Endpoints, other)
	f.noErr(err, "Begin the second time")
	f.true(location != otherLocation, "Begin returned the same address for two logins")
	f.true(
		string(memory) != string(otherMemory),
		"Begin returned the same memory for two logins, so that an answer fits both",
	)

	// Nothing that anybody can make up is an answer.
	for _, params := range []url.Values{
		{}, {"state": {state}}, {"state": {state}, "code": {""}}, {"RelayState": {state}, "SAMLResponse": {""}},
		{"error": {"access_denied"}, "state": {state}}, {"RelayState": {state}, "SAMLResponse": {"%%%"}},
		{"RelayState": {state}, "SAMLResponse": {"PHNhbWxwOlJlc3BvbnNlLz4="}},
		{"state": {state, other}, "code": {"a", "b"}},
	} {
		for _, memory := range [][]byte{memory, otherMemory, nil, []byte("nonsense"), []byte("{}")} {
			_, err := login.Finish(ctx, f.Endpoints, memory, domains.Answer{Params: params, State: state})
			f.refuses(err, fmt.Sprintf("Finish of the made-up answer %v", params))
		}
	}
}

// mayRefuse checks the code of an error, if there is one.
func (f *fixture) mayRefuse(err error, what string) {
	f.t.Helper()
	f.hides(err)
	code := errs.CodeOf(err)
	f.true(err == nil || code == errs.Unauthenticated ||
		code == errs.Upstream, "%s failed with errs.%s, where it must be errs.%s or errs.%s: %v",
		what, code, errs.Unauthenticated, errs.Upstream, err)
}

// refuses checks that there is an error, and its code.
func (f *fixture) refuses(err error, what string) {
	f.t.Helper()
	f.true(err != nil, "%s succeeded", what)
	f.mayRefuse(err, what)
}

// testLogout: a logout needs a session of this provider, and what anybody can make up ends none.
func testLogout(t *testing.T, f *fixture) {
	ctx, realm := t.Context(), f.open(f.Config)
	if out, ok := realm.(domains.LogoutAtProvider); ok {
		for _, session := range [][]byte{
			nil, {}, []byte("nonsense"), []byte("{}"),
			[]byte(`{"issuer": "https://other.example.com", "token": "x"}`),
		} {
			location, _, err := out.BeginLogout(ctx, f.Endpoints, session, "a-state")
			f.true(location == "", "BeginLogout returned the address %s for the made-up session %q", location, session)
			f.mayRefuse(err, "BeginLogout of a made-up session")
			if forms, ok := realm.(domains.FormLogout); ok {
				location, form, _, err := forms.BeginFormLogout(ctx, f.Endpoints, session, "a-state")
				f.true(location == "" &&
					form == nil, "BeginFormLogout returned the address %s for the made-up session %q",
					location, session)
				f.mayRefuse(err, "BeginFormLogout of a made-up session")
			}
		}
	}
	if receiver, ok := realm.(domains.LogoutReceiver); ok {
		for _, params := range []url.Values{
			{}, {"logout_token": {""}},
			{"logout_token": {"a.b.c"}},
			{"logout_token": {"eyJhbGciOiJub25lIn0.e30."}}, {"SAMLRequest": {"PHNhbWxwOkxvZ291dFJlcXVlc3QvPg=="}},
			{"SAMLRequest": {"%%%"}}, {"SAMLResponse": {"PHNhbWxwOkxvZ291dFJlc3BvbnNlLz4="}},
		} {
			n, err := receiver.ReceiveLogout(ctx, f.Endpoints, domains.Answer{Params: params, Query: params.Encode()})
			f.refuses(err, fmt.Sprintf("ReceiveLogout of the made-up notice %v", params))
			f.true(n.Subject == "" &&
				len(n.Sessions) == 0, "ReceiveLogout refused a notice and returned sessions that end: %+v", n)
		}
	}
}

func testMetadata(_ *testing.T, f *fixture) {
	m, ok := f.open(f.Config).(domains.Metadata)
	if !ok {
		return
	}
	document, contentType, err := m.Metadata(f.Endpoints)
	f.noErr(err, "Metadata")
	f.true(len(document) > 0, "Metadata returned an empty document")
	f.true(strings.Contains(contentType, "/"), "Metadata returned the content type %q", contentType)
}
