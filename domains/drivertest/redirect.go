package drivertest

import (
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
	f.NoErr(err)
	u, err := url.Parse(location)
	f.NoErr(err)
	f.True(u.Host != "" && (u.Scheme == "https" || u.Scheme == "http"))
	f.True(strings.Contains(u.RawQuery, url.QueryEscape(state))) // it comes back
	otherLocation, otherMemory, err := login.Begin(ctx, f.Endpoints, other)
	f.NoErr(err)
	f.True(location != otherLocation)
	f.True(string(memory) != string(otherMemory)) // no answer fits two logins

	// Nothing that anybody can make up is an answer.
	for _, params := range []url.Values{
		{}, {"state": {state}}, {"state": {state}, "code": {""}}, {"RelayState": {state}, "SAMLResponse": {""}},
		{"error": {"access_denied"}, "state": {state}}, {"RelayState": {state}, "SAMLResponse": {"%%%"}},
		{"RelayState": {state}, "SAMLResponse": {"PHNhbWxwOlJlc3BvbnNlLz4="}}, {"state": {state, other}, "code": {"a", "b"}},
	} {
		for _, memory := range [][]byte{memory, otherMemory, nil, []byte("nonsense"), []byte("{}")} {
			_, err := login.Finish(ctx, f.Endpoints, memory, domains.Answer{Params: params, State: state})
			f.True(err != nil)
			f.hides(err)
			code := errs.CodeOf(err)
			f.True(code == errs.Unauthenticated || code == errs.Upstream)
		}
	}
}

// testLogout: a logout needs a session of this provider, and what anybody can make up ends none.
func testLogout(t *testing.T, f *fixture) {
	ctx, realm := t.Context(), f.open(f.Config)
	if out, ok := realm.(domains.LogoutAtProvider); ok {
		for _, session := range [][]byte{nil, {}, []byte("nonsense"), []byte("{}"), []byte(`{"issuer": "https://other.example.com", "token": "x"}`)} {
			location, _, err := out.BeginLogout(ctx, f.Endpoints, session, "a-state")
			f.True(location == "")
			f.True(err == nil || errs.CodeOf(err) == errs.Unauthenticated || errs.CodeOf(err) == errs.Upstream)
			if forms, ok := realm.(domains.FormLogout); ok {
				location, form, _, err := forms.BeginFormLogout(ctx, f.Endpoints, session, "a-state")
				f.True(location == "" && form == nil)
				f.True(err == nil || errs.CodeOf(err) == errs.Unauthenticated || errs.CodeOf(err) == errs.Upstream)
			}
		}
	}
	if receiver, ok := realm.(domains.LogoutReceiver); ok {
		for _, params := range []url.Values{
			{}, {"logout_token": {""}}, {"logout_token": {"a.b.c"}}, {"logout_token": {"eyJhbGciOiJub25lIn0.e30."}}, {"SAMLRequest": {"PHNhbWxwOkxvZ291dFJlcXVlc3QvPg=="}},
			{"SAMLRequest": {"%%%"}}, {"SAMLResponse": {"PHNhbWxwOkxvZ291dFJlc3BvbnNlLz4="}},
		} {
			n, err := receiver.ReceiveLogout(ctx, f.Endpoints, domains.Answer{Params: params, Query: params.Encode()})
			f.True(err != nil && n.Subject == "" && len(n.Sessions) == 0)
			f.hides(err)
			f.True(errs.CodeOf(err) == errs.Unauthenticated || errs.CodeOf(err) == errs.Upstream)
		}
	}
}

func testMetadata(_ *testing.T, f *fixture) {
	m, ok := f.open(f.Config).(domains.Metadata)
	if !ok {
		return
	}
	document, contentType, err := m.Metadata(f.Endpoints)
	f.NoErr(err)
	f.True(len(document) > 0)
	f.True(strings.Contains(contentType, "/"))
}
