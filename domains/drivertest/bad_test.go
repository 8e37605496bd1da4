package drivertest_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/errs"
)

// register is a driver of people in memory. fault is what it does wrong.
type register struct{ fault string }

func (r register) Info() domains.Info {
	return domains.Info{
		ID: "register", Name: "Register",
		Group:          "Directory",
		LoginComponent: "password", LoginMethod: map[bool]string{true: "GET", false: "POST"}[r.fault == "method"],
		UsernameParam: "username", PasswordParam: "password",
		ScanComponent: map[string]any{"name": "scan"}, Secrets: []string{"key"},
	}
}

func (r register) Open(config json.RawMessage) (domains.Realm, error) {
	var members map[string]json.RawMessage // by their exact names, which decoding into a struct does not ask for
	var name, key string
	isText := func(member string, into *string) bool { return json.Unmarshal(members[member], into) == nil }
	switch err := json.Unmarshal(config, &members); {
	case r.fault == "takes anything":
	case err != nil, members["key"] != nil && !isText("key", &key):
		return nil, errs.New(errs.Invalid, "key must be text")
	case !isText("name", &name) && r.fault == "names another member":
		return nil, errs.New(errs.Invalid, "There is something missing.")
	case !isText("name", &name):
		return nil, errs.New(errs.Invalid, "name must be text")
	}
	return people(r), nil
}

type people struct{ fault string }

func (people) Check() error { return nil }

// asked fails if the context has ended.
func (p people) asked(ctx context.Context) error {
	switch {
	case p.fault == "hangs" && ctx.Err() != nil:
		select {}
	case p.fault == "ignores its context":
		return nil
	}
	return ctx.Err()
}

var jo = domains.Identity{ID: "1", Username: "jo"}

func (p people) Login(ctx context.Context, username, password string) (domains.Identity, error) {
	if err := p.asked(ctx); err != nil {
		if p.fault == "refuses at the end" {
			return domains.Identity{}, errs.New(errs.Unauthenticated, "Unable to log in")
		}
		return domains.Identity{}, err
	}
	right := password == "jo's secret" || password == "" && p.fault == "lets in without a password"
	switch {
	case username == "jo" && right, username == "*" && p.fault == "searches":
		return jo, nil
	case username == "jo" && p.fault == "says which":
		return jo, errs.New(errs.Unauthenticated, "The password is wrong")
	case p.fault == "tells the password":
		return domains.Identity{}, errs.New(errs.Unauthenticated, "It is not %s", password)
	case p.fault == "knows no code":
		return domains.Identity{}, errs.New(errs.NotFound, "Unable to log in")
	}
	return domains.Identity{}, errs.New(errs.Unauthenticated, "Unable to log in")
}

func (p people) Entries(ctx context.Context) iter.Seq2[domains.Entry, error] {
	return func(yield func(domains.Entry, error) bool) {
		if p.fault == "an empty end" && ctx.Err() != nil {
			return
		}
		if err := p.asked(ctx); err != nil {
			yield(domains.Entry{}, err)
			return
		}
		who, group := jo, domains.Group{ID: "g", Name: "Staff", Members: []string{"1"}}
		all := []domains.Entry{{Person: &who}, {Group: &group}}
		switch p.fault {
		case "groups first":
			all[0], all[1] = all[1], all[0]
		case "unknown members":
			group.Members = []string{"2"}
		case "twice":
			all = append(all[:1:1], all...)
		}
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// badDriver is the variable of the environment with the fault that TestOneDriver has.
const badDriver = "TENANTCONTENT_TEST_FAULT"

// TestOneDriver: the checks find no fault in a good driver. TestBadDrivers runs it with faults.
func TestOneDriver(t *testing.T) {
	drivertest.Test(t, register{os.Getenv(badDriver)}, drivertest.Fixture{
		Config: json.RawMessage(`{"name": "x", "key": "the key of x"}`), Bad: map[string]string{`{}`: "name"},
		Login: "jo", Password: "jo's secret",
	})
}

// TestBadDrivers: each fault fails the check that is meant for it, with a sentence, and soon.
func TestBadDrivers(t *testing.T) {
	for fault, want := range map[string][2]string{
		"method":         {"Open", "Info has the LoginMethod \"GET\", where a PasswordLogin has POST"},
		"takes anything": {"BadConfig", "succeeded, where it must fail with errs.invalid"},
		"names another member": {
			"BadConfig/name", `the message "There is something missing." does not begin with name`,
		},
		"ignores its context":        {"Cancelled", "Login whose context has ended succeeded"},
		"hangs":                      {"Cancelled", "Login whose context has ended has not returned within"},
		"refuses at the end":         {"Cancelled", "Login whose context has ended refused the person"},
		"an empty end":               {"Cancelled", "Entries whose context has ended ended without an error"},
		"lets in without a password": {"Password", `Login of "jo" with an empty password succeeded`},
		"searches":                   {"Password", `Login of "*" with a password of 11 bytes succeeded`},
		"says which": {
			"Password",
			"which must be alike for every reason: got Unable to log in, want The password is wrong",
		},
		"tells the password": {"Password", "a secret is in the error"},
		"knows no code": {
			"Password",
			"Login with a wrong password failed with errs.not_found, where it must be errs.unauthenticated",
		},
		"groups first": {
			"Entries", "Entries has the person jo after a group, where all people come first",
		},
		"unknown members": {"Entries", "The group Staff has the member 2, who is no person of Entries"},
		"twice":           {"Entries", "Entries has two people with the id 1"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneDriver$", "-test.v")
			child.Env = append(os.Environ(), badDriver+"="+fault)
			out, err := child.CombinedOutput()
			if err == nil {
				t.Fatalf("no check fails:\n%s", out)
			}
			for _, text := range []string{"--- FAIL: TestOneDriver/" + want[0] + " (", want[1]} {
				if !strings.Contains(string(out), text) {
					t.Errorf("there is no %q in\n%s", text, out)
				}
			}
		})
	}
}
