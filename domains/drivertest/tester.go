package drivertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
)

// stepNames are those that a Tester may use.
var stepNames = []string{
	"connect", "tls", "bind", "search", "person", "groups", "discovery", "metadata", "keys", "signing",
	"encryption", "client",
}

func testTester(t *testing.T, f *fixture) {
	realm, ok := f.open(f.Config).(domains.Tester)
	if !ok {
		return
	}
	for _, username := range []string{"", f.Login} {
		steps := realm.Test(t.Context(), f.Endpoints, username)
		f.checkSteps(steps)
		for _, step := range steps {
			if !step.OK {
				t.Errorf("the step %s fails: %s", step.Name, step.Message)
			}
		}
	}
	if f.Login != "" {
		who, err := realm.(domains.PasswordLogin).Login(t.Context(), f.Login, f.Password)
		f.noErr(err, "Login")
		shown := false
		for _, step := range realm.Test(t.Context(), f.Endpoints, f.Login) {
			if step.Person != nil {
				shown = true
				f.equal(*step.Person, who, "The person whom Test shows, who is the one that logs in")
			}
		}
		f.true(shown, "Test of the fixture's Login shows no person")
		for _, username := range strangers(f.Login)[:8] {
			steps := realm.Test(t.Context(), f.Endpoints, username)
			f.checkSteps(steps)
			f.true(!steps[len(steps)-1].OK &&
				steps[len(steps)-1].Person == nil, "Test of %.100q, which is nobody's name, succeeded: %+v",
				username, steps[len(steps)-1])
		}
	}
	if f.Away != nil {
		away := f.open(f.Away).(domains.Tester)
		var steps []domains.Step
		_ = f.soon("Test of a server that is silent", func() error {
			steps = away.Test(t.Context(), f.Endpoints, f.Login)
			return nil
		})
		f.checkSteps(steps)
		f.true(!steps[len(steps)-1].OK, "Test of a server that is silent succeeded")
	}
}

// checkSteps checks that steps have names that are known, messages, and no secrets.
func (f *fixture) checkSteps(steps []domains.Step) {
	f.t.Helper()
	f.true(len(steps) > 0, "Test returned no step")
	for _, step := range steps {
		f.true(slices.Contains(stepNames, step.Name), "Test has the step %q, which is none of %q", step.Name, stepNames)
		f.true(step.Message != "", "The step %s has no message", step.Name)
		if step.Person != nil {
			f.checkIdentity(*step.Person)
		}
		for _, secret := range f.secrets() {
			if len(secret) > 3 && strings.Contains(step.Message, secret) {
				f.t.Errorf("a secret is in the step %q", step.Message)
			}
		}
	}
}

func testAccountNames(t *testing.T, f *fixture) {
	realm, ok := f.open(f.Config).(domains.AccountNames)
	if !ok {
		return
	}
	who, err := realm.Login(t.Context(), f.Login, f.Password)
	f.noErr(err, "Login")
	f.equal(realm.Account(who.Username), who.Username, "Account of the short name")
	f.true(
		strings.EqualFold(realm.Account(f.Login), who.Username),
		"Account of %q is %q, where Login has the username %q", f.Login, realm.Account(f.Login), who.Username,
	)
	for _, username := range strangers(f.Login) {
		if short := realm.Account(username); short != "" && strings.EqualFold(short, who.Username) {
			t.Errorf("%q is taken for %q", username, who.Username)
		}
	}
	if f.Away != nil {
		away := f.open(f.Away).(domains.AccountNames)
		_ = f.soon("Account, which asks nobody", func() error {
			for range 1000 {
				away.Account(f.Login)
			}
			return nil
		})
	}
}
