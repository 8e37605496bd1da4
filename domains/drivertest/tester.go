package drivertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
)

// stepNames are those that a Tester may use.
var stepNames = []string{"connect", "tls", "bind", "search", "person", "groups", "discovery", "metadata", "keys", "signing", "encryption", "client"}

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
		f.NoErr(err)
		shown := false
		for _, step := range realm.Test(t.Context(), f.Endpoints, f.Login) {
			if step.Person != nil {
				shown = true
				f.Equal(*step.Person, who) // whoever logs in is whom the test shows
			}
		}
		f.True(shown)
		for _, username := range strangers(f.Login)[:8] {
			steps := realm.Test(t.Context(), f.Endpoints, username)
			f.checkSteps(steps)
			f.True(!steps[len(steps)-1].OK && steps[len(steps)-1].Person == nil) // nobody has this name
		}
	}
	if f.Away != nil {
		f.soon(func() {
			steps := f.open(f.Away).(domains.Tester).Test(t.Context(), f.Endpoints, f.Login)
			f.checkSteps(steps)
			f.True(!steps[len(steps)-1].OK)
		})
	}
}

// checkSteps checks that steps have names that are known, messages, and no secrets.
func (f *fixture) checkSteps(steps []domains.Step) {
	f.t.Helper()
	f.True(len(steps) > 0)
	for _, step := range steps {
		f.True(slices.Contains(stepNames, step.Name))
		f.True(step.Message != "")
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
	f.NoErr(err)
	f.Equal(realm.Account(who.Username), who.Username) // the short name is one of the names
	f.True(strings.EqualFold(realm.Account(f.Login), who.Username))
	for _, username := range strangers(f.Login) {
		if short := realm.Account(username); short != "" && strings.EqualFold(short, who.Username) {
			t.Errorf("%q is taken for %q", username, who.Username)
		}
	}
	if f.Away != nil {
		away := f.open(f.Away).(domains.AccountNames)
		f.soon(func() {
			for range 1000 {
				away.Account(f.Login) // it asks nobody
			}
		})
	}
}
