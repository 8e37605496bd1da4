// Package drivertest checks that a domain driver meets the contract of domains.Driver and of what its realms can do.
// Tests of hosts import it.
package drivertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Fixture is what a driver is checked with.
type Fixture struct {
	// Config is a valid configuration. The directory that it names exists, and nobody else changes it during the test.
	Config json.RawMessage
	// Bad are invalid configurations, each with the member at fault, such as attributes.username.
	Bad map[string]string
	// Away is a configuration for a server that accepts connections and never answers, with a time-out of a few seconds; nil if
	// the driver has no server.
	Away json.RawMessage

	// Login and Password are those of a person who may log in, for a realm that is a PasswordLogin.
	Login, Password string
	// Refused are the names and passwords of people whom the realm knows and refuses.
	Refused map[string]string
	// Disabled are the usernames and passwords of people who are disabled there, and Locked those of people who are locked for a while.
	Disabled, Locked map[string]string
	// Endpoints are those of a RedirectLogin; addresses of example.org when left out.
	Endpoints domains.Endpoints
}

// timeout is how long a call may take. One that is canceled, or that waits for the server of Fixture.Away, is far quicker.
const timeout = 10 * time.Second

// Test runs all checks. What a realm cannot do is not checked.
func Test(t *testing.T, d domains.Driver, f Fixture) {
	if f.Endpoints == (domains.Endpoints{}) {
		const base = "https://example.org/api/login/x/"
		f.Endpoints = domains.Endpoints{Callback: base + "callback", ACS: base + "acs", Metadata: base + "metadata", SLO: base + "slo"}
	}
	for _, check := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"Info", testInfo},
		{"Open", testOpen},
		{"BadConfig", testBadConfig},
		{"Password", testPassword},
		{"Parallel", testParallel},
		{"Redirect", testRedirect},
		{"Logout", testLogout},
		{"Metadata", testMetadata},
		{"Entries", testEntries},
		{"EntriesStop", testEntriesStop},
		{"Cancelled", testCancelled},
		{"Away", testAway},
		{"Tester", testTester},
		{"AccountNames", testAccountNames},
		{"Finder", testFinder},
	} {
		t.Run(check.name, func(t *testing.T) {
			check.run(t, &fixture{Fixture: f, I: is.New(t), t: t, driver: d})
		})
	}
}

type fixture struct {
	Fixture
	*is.I
	t      *testing.T
	driver domains.Driver
}

// open opens a configuration that fits.
func (f *fixture) open(config json.RawMessage) domains.Realm {
	f.t.Helper()
	realm, err := f.driver.Open(config)
	f.NoErr(err)
	return realm
}

// fails checks an error: its code, that it has a message, and that it contains no secret, not even for the log.
func (f *fixture) fails(err error, code errs.Code, secrets ...string) {
	f.t.Helper()
	f.True(err != nil) // it has to fail
	f.hides(err, secrets...)
	f.Equal(errs.CodeOf(err), code)
	f.True(errs.MessageOf(err) != "")
}

// hides checks that an error contains no secret.
func (f *fixture) hides(err error, secrets ...string) {
	f.t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v", e, e)
		for _, secret := range append(secrets, f.secrets()...) {
			if len(secret) > 3 && strings.Contains(text, secret) {
				f.t.Errorf("a secret is in the error %q", text)
			}
		}
	}
}

// secrets are those that the configuration has, and the password.
func (f *fixture) secrets() []string {
	secrets := []string{f.Password}
	var members map[string]json.RawMessage
	f.NoErr(json.Unmarshal(f.Config, &members))
	for _, name := range f.driver.Info().Secrets {
		var s string
		if json.Unmarshal(members[name], &s) == nil {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// soon checks that fn is quick.
func (f *fixture) soon(fn func()) {
	f.t.Helper()
	began := time.Now()
	fn()
	if took := time.Since(began); took > timeout {
		f.t.Errorf("it took %v", took)
	}
}
