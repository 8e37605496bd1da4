package drivertest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

var idPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

func testInfo(_ *testing.T, f *fixture) {
	info := f.driver.Info()
	f.equal(f.driver.Info(), info, "Info the second time")
	for key := range info.Defaults {
		info.Defaults[key] = "changed by a caller"
	}
	for i := range info.Secrets {
		info.Secrets[i] = "changed by a caller"
	}
	clear(info.EditComponent)
	clear(info.ScanComponent)
	info = f.driver.Info()
	for _, value := range info.Defaults {
		f.true(
			value != "changed by a caller",
			"Info has Defaults that another caller has changed: each must get its own",
		)
	}
	f.true(
		!slices.Contains(info.Secrets, "changed by a caller"),
		"Info has Secrets that another caller has changed: each must get its own",
	)

	f.true(idPattern.MatchString(info.ID), "Info has the ID %q, which must be %s", info.ID, idPattern)
	f.true(info.Name != "" && info.Group != "" &&
		info.LoginComponent != "", "Info must have a Name, Group and LoginComponent: %+v", info)
	f.true(info.LoginMethod == "POST" ||
		info.LoginMethod == "GET", "Info has the LoginMethod %q, which must be POST or GET", info.LoginMethod)
	f.true(
		(info.UsernameParam != "") == (info.LoginMethod == "POST"),
		"Info must have a UsernameParam with the LoginMethod POST and no other",
	)
	f.true(
		(info.PasswordParam != "") == (info.LoginMethod == "POST"),
		"Info must have a PasswordParam with the LoginMethod POST and no other",
	)
	f.true(
		len(slices.Compact(slices.Sorted(slices.Values(info.Secrets)))) == len(info.Secrets),
		"Info has a secret twice: %q", info.Secrets,
	)
	for key := range info.Defaults {
		f.true(key != "", "Info has Defaults with an empty name")
	}
	_, err := json.Marshal(info)
	f.noErr(err, "writing Info as JSON")
}

func testOpen(_ *testing.T, f *fixture) {
	info := f.driver.Info()
	realm := f.open(f.Config)
	f.noErr(realm.Check(), "Check")
	_, password := realm.(domains.PasswordLogin)
	_, redirect := realm.(domains.RedirectLogin)
	_, metadata := realm.(domains.Metadata)
	_, directory := realm.(domains.Directory)
	f.true(
		!password || info.LoginMethod == "POST", "Info has the LoginMethod %q, where a PasswordLogin has POST",
		info.LoginMethod,
	)
	f.true(
		!redirect || info.LoginMethod == "GET", "Info has the LoginMethod %q, where a RedirectLogin has GET",
		info.LoginMethod,
	)
	f.true(!metadata || redirect, "The realm has Metadata, but is no RedirectLogin")
	f.true(
		directory == (info.ScanComponent != nil),
		"Info must have a ScanComponent if its realms are a Directory, and else none",
	)

	// Members that the driver does not know are no error, and those of other case are not known.
	var members map[string]json.RawMessage
	f.noErr(json.Unmarshal(f.Config, &members), "reading Config of the fixture")
	members["not a member of any driver"] = json.RawMessage(`[{"a": null}]`)
	for name := range members {
		if other := strings.ToUpper(name); other != name {
			members[other] = json.RawMessage(`{"not": ["what", "it", "wants"]}`)
		}
	}
	more, err := json.Marshal(members)
	f.noErr(err, "writing a configuration")
	f.open(more)

	// It asks nobody.
	if f.Away != nil {
		f.noErr(f.soon("Open", func() error { _, err := f.driver.Open(f.Away); return err }), "Open of Away")
	}
}

func testBadConfig(t *testing.T, f *fixture) {
	for config, member := range f.Bad {
		t.Run(member, func(t *testing.T) {
			f := &fixture{Fixture: f.Fixture, t: t, driver: f.driver}
			_, err := f.driver.Open(json.RawMessage(config))
			f.fails(err, errs.Invalid, "Open of "+config)
			if !strings.HasPrefix(errs.MessageOf(err), member+" ") {
				t.Errorf("%s: the message %q does not begin with %s", config, errs.MessageOf(err), member)
			}
		})
	}
	// Whatever it is, it is an error of the caller.
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	for _, config := range []string{``, `{`, `[]`, `"text"`, `7`, `true`, `{"a": }`, "\x00", deep} {
		if _, err := f.driver.Open(json.RawMessage(config)); err != nil {
			f.fails(err, errs.Invalid, fmt.Sprintf("Open of %.100q", config))
		}
	}
	for _, config := range []string{`{`, `[]`, `"text"`, `7`, `true`} {
		_, err := f.driver.Open(json.RawMessage(config))
		f.fails(err, errs.Invalid, "Open of "+config)
	}
	// A secret is text.
	var members map[string]json.RawMessage
	f.noErr(json.Unmarshal(f.Config, &members), "reading Config of the fixture")
	for _, name := range f.driver.Info().Secrets {
		given := members[name]
		members[name] = json.RawMessage(`{"not": "text"}`)
		config, err := json.Marshal(members)
		f.noErr(err, "writing a configuration")
		_, err = f.driver.Open(config)
		f.fails(err, errs.Invalid, "Open with an object as the secret "+name)
		members[name] = given
	}
}
