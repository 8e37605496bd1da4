// Package drivertest checks that a domain driver meets the contract of domains.Driver and of what
// its realms can do. Tests of hosts import it.
package drivertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Fixture is what a driver is checked with.
type Fixture struct {
	// Config is a valid configuration. The directory that it names exists, and nobody else changes
	// it during the test.
	Config json.RawMessage
	// Bad are invalid configurations, each with the member at fault, such as attributes.username.
	Bad map[string]string
	// Away is a configuration for a server that accepts connections and never answers, with a
	// time-out of a few seconds; nil if the driver has no server.
	Away json.RawMessage

	// Login and Password are those of a person who may log in, for a realm that is a PasswordLogin.
	Login, Password string
	// Refused are the names and passwords of people whom the realm knows and refuses.
	Refused map[string]string
	// Disabled are the usernames and passwords of people who are disabled there, and Locked those
	// of people who are locked for a while.
	Disabled, Locked map[string]string
	// Endpoints are those of a RedirectLogin; addresses of example.org when left out.
	Endpoints domains.Endpoints
}

// timeout is how long a call may take. One that is canceled, or that waits for the server of
// Fixture.Away, is far quicker.
const timeout = 10 * time.Second

// Test runs all checks. What a realm cannot do is not checked.
func Test(t *testing.T, d domains.Driver, f Fixture) {
	if f.Endpoints == (domains.Endpoints{}) {
		const base = "https://example.org/api/login/x/"
		f.Endpoints = domains.Endpoints{
			Callback: base + "callback",
			ACS:      base + "acs",
			Metadata: base + "metadata",
			SLO:      base + "slo",
		}
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
			check.run(t, &fixture{Fixture: f, t: t, driver: d})
		})
	}
}

type fixture struct {
	Fixture
	t      *testing.T
	driver domains.Driver
}

// true ends the subtest with a sentence unless something holds.
func (f *fixture) true(holds bool, format string, args ...any) {
	f.t.Helper()
	if !holds {
		f.t.Fatalf(format, args...)
	}
}

// equal ends the subtest unless two values are the same. what names the one that the driver
// returned.
func (f *fixture) equal(got, want any, what string) {
	f.t.Helper()
	f.true(
		reflect.DeepEqual(got, want), "%s: got %.1000s, want %.1000s", what, fmt.Sprintf("%+v", got),
		fmt.Sprintf("%+v", want),
	)
}

func (f *fixture) noErr(err error, what string) {
	f.t.Helper()
	f.true(err == nil, "%s failed: %v", what, err)
}

// open opens a configuration that fits.
func (f *fixture) open(config json.RawMessage) domains.Realm {
	f.t.Helper()
	realm, err := f.driver.Open(config)
	f.noErr(err, "Open")
	return realm
}

// fails checks an error: its code, that it has a message, and that it contains no secret, not even
// for the log.
func (f *fixture) fails(err error, code errs.Code, what string, secrets ...string) {
	f.t.Helper()
	f.true(err != nil, "%s succeeded, where it must fail with errs.%s", what, code)
	f.hides(err, secrets...)
	f.true(
		errs.CodeOf(err) == code, "%s failed with errs.%s, where it must be errs.%s: %v", what,
		errs.CodeOf(err), code, err,
	)
	f.true(errs.MessageOf(err) != "", "%s failed with an error without a message for people: %v", what, err)
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
	f.noErr(json.Unmarshal(f.Config, &members), "reading Config of the fixture")
	for _, name := range f.driver.Info().Secrets {
		var s string
		if json.Unmarshal(members[name], &s) == nil {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// soon calls fn and ends the subtest if it takes too long, whether it returns or not.
func (f *fixture) soon(what string, fn func() error) (err error) {
	f.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = fn()
	}()
	select {
	case <-done:
		return err
	case <-time.After(timeout):
		f.t.Fatalf("%s has not returned within %v", what, timeout)
		return nil
	}
}
