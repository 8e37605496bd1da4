package drivertest

import (
	"encoding/json"
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
	f.Equal(info, f.driver.Info()) // the same each time
	for key := range info.Defaults {
		info.Defaults[key] = "changed by a caller"
	}
	for i := range info.Secrets {
		info.Secrets[i] = "changed by a caller"
	}
	clear(info.EditComponent)
	clear(info.ScanComponent)
	info = f.driver.Info()
	f.Equal(info, f.driver.Info())
	for _, value := range info.Defaults {
		f.True(value != "changed by a caller") // each caller has an Info of its own
	}
	f.True(!slices.Contains(info.Secrets, "changed by a caller"))

	f.True(idPattern.MatchString(info.ID))
	f.True(info.Name != "")
	f.True(info.Group != "")
	f.True(info.LoginComponent != "")
	f.True(info.LoginMethod == "POST" || info.LoginMethod == "GET")
	f.Equal(info.UsernameParam != "", info.LoginMethod == "POST")
	f.Equal(info.PasswordParam != "", info.LoginMethod == "POST")
	f.Equal(len(slices.Compact(slices.Sorted(slices.Values(info.Secrets)))), len(info.Secrets))
	for key := range info.Defaults {
		f.True(key != "")
	}
	_, err := json.Marshal(info)
	f.NoErr(err)
}

func testOpen(_ *testing.T, f *fixture) {
	info := f.driver.Info()
	realm := f.open(f.Config)
	f.NoErr(realm.Check())
	_, password := realm.(domains.PasswordLogin)
	_, redirect := realm.(domains.RedirectLogin)
	_, metadata := realm.(domains.Metadata)
	_, directory := realm.(domains.Directory)
	f.True(!password || info.LoginMethod == "POST")
	f.True(!redirect || info.LoginMethod == "GET")
	f.True(!metadata || redirect)
	f.Equal(directory, info.ScanComponent != nil)

	// Members that the driver does not know are no error, and those of other case are not known.
	var members map[string]json.RawMessage
	f.NoErr(json.Unmarshal(f.Config, &members))
	members["not a member of any driver"] = json.RawMessage(`[{"a": null}]`)
	for name := range members {
		if other := strings.ToUpper(name); other != name {
			members[other] = json.RawMessage(`{"not": ["what", "it", "wants"]}`)
		}
	}
	more, err := json.Marshal(members)
	f.NoErr(err)
	f.open(more)

	// It asks nobody.
	if f.Away != nil {
		f.soon(func() { f.open(f.Away) })
	}
}

func testBadConfig(t *testing.T, f *fixture) {
	for config, member := range f.Bad {
		t.Run(member, func(t *testing.T) {
			f := &fixture{Fixture: f.Fixture, I: f.I.New(t), t: t, driver: f.driver}
			_, err := f.driver.Open(json.RawMessage(config))
			f.fails(err, errs.Invalid)
			if !strings.HasPrefix(errs.MessageOf(err), member+" ") {
				t.Errorf("%s: the message %q does not begin with %s", config, errs.MessageOf(err), member)
			}
		})
	}
	// Whatever it is, it is an error of the caller.
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	for _, config := range []string{``, `{`, `[]`, `"text"`, `7`, `true`, `{"a": }`, "\x00", deep} {
		if _, err := f.driver.Open(json.RawMessage(config)); err != nil {
			f.fails(err, errs.Invalid)
		}
	}
	for _, config := range []string{`{`, `[]`, `"text"`, `7`, `true`} {
		_, err := f.driver.Open(json.RawMessage(config))
		f.fails(err, errs.Invalid)
	}
	// A secret is text.
	var members map[string]json.RawMessage
	f.NoErr(json.Unmarshal(f.Config, &members))
	for _, name := range f.driver.Info().Secrets {
		given := members[name]
		members[name] = json.RawMessage(`{"not": "text"}`)
		config, err := json.Marshal(members)
		f.NoErr(err)
		_, err = f.driver.Open(config)
		f.fails(err, errs.Invalid)
		members[name] = given
	}
}
