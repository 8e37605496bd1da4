package drivertest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// wrong is a password that nobody has.
const wrong = "nobody's password, c4f1"

// password returns the realm as a PasswordLogin, and the fixture's person; false where there is
// none.
func (f *fixture) password() (domains.PasswordLogin, bool) {
	f.t.Helper()
	login, ok := f.open(f.Config).(domains.PasswordLogin)
	f.true(!ok || f.Login != "" &&
		f.Password != "", "The fixture has no Login and Password, which the checks of a PasswordLogin need")
	return login, ok
}

func testPassword(t *testing.T, f *fixture) {
	login, ok := f.password()
	if !ok {
		return
	}
	ctx := t.Context()
	who, err := login.Login(ctx, f.Login, f.Password)
	f.noErr(err, "Login")
	f.checkIdentity(who)
	f.true(!who.Disabled && !who.Locked, "Login let in a person who is Disabled or Locked: %+v", who)
	again, err := login.Login(ctx, f.Login, f.Password)
	f.noErr(err, "Login the second time")
	f.equal(again, who, "Login the second time")

	_, err = login.Login(ctx, f.Login, wrong)
	f.fails(err, errs.Unauthenticated, "Login with a wrong password", wrong)
	message := errs.MessageOf(err)
	refuse := func(username, password string) {
		t.Helper()
		_, err := login.Login(ctx, username, password)
		f.fails(
			err, errs.Unauthenticated,
			fmt.Sprintf("Login of %.100q with a password of %d bytes", username, len(password)), password,
		)
		f.equal(
			errs.MessageOf(err), message,
			fmt.Sprintf("The message of the refusal of %.100q, which must be alike for every reason", username),
		)
	}
	for _, username := range strangers(f.Login) {
		refuse(username, f.Password)
		refuse(username, wrong)
	}
	for _, password := range []string{
		f.Password + " ", strings.ToUpper(f.Password) + "x", f.Password + "\x00", wrong + strings.Repeat("x", 100_000),
	} {
		refuse(f.Login, password)
	}
	for username, password := range f.Refused {
		refuse(username, password)
	}
	for disabled, people := range map[bool]map[string]string{true: f.Disabled, false: f.Locked} {
		for username, password := range people {
			refuse(username, password)
			if who, _ := login.Login(ctx, username, password); who.ID != "" {
				f.equal(
					who.Disabled, disabled,
					"Disabled of the refused person "+username+": one who is only locked is not disabled",
				)
			}
		}
	}
	for _, username := range []string{f.Login, "", "nobody at all"} {
		_, err := login.Login(ctx, username, "")
		f.true(err != nil, "Login of %q with an empty password succeeded", username)
	}
	_, err = login.Login(ctx, "", f.Password)
	f.true(err != nil, "Login with an empty name succeeded")
}

// strangers are names that are not somebody's: what would be if it were not escaped, and what would
// break.
func strangers(login string) []string {
	return []string{
		"nobody at all", "*", login + "*", "*)(uid=*",
		"*)(objectClass=*", login + ")(objectClass=*", login + ")(|(a=*)", "(" + login + ")",
		`\`, `\2a`, `*\00`, login + `\`, "\x00", login + "\x00", "\x00" + login, login + "\n", login + " ", " " + login,
		login + ",ou=people", "uid=" + login, "cn=" + login, login + "\u200b",
		login + "\xff", "\xff\xfe", "' OR '1'='1", login + "' --",
		"../" + login, "\u202e" + login, strings.Repeat("x", 100_000),
		strings.Repeat("(", 10_000), "%00", "${" + login + "}",
	}
}

func (f *fixture) checkIdentity(who domains.Identity) {
	f.t.Helper()
	f.true(
		who.ID != "" && len(who.ID) <= 255, "The person %s has the id %q, which must have 1 to 255 bytes",
		who.Username, who.ID,
	)
	f.true(who.Username != "", "The person with the id %s has no username", who.ID)
	for _, s := range []string{
		who.ID, who.Username, who.DisplayName, who.GivenName, who.FamilyName, who.Email, who.Timezone,
	} {
		f.true(!strings.Contains(s, "\x00") &&
			strings.ToValidUTF8(s, "") == s, "The person %s has the text %q, which no database keeps", who.ID, s)
	}
}

func testParallel(t *testing.T, f *fixture) {
	login, ok := f.password()
	if !ok {
		return
	}
	who, err := login.Login(t.Context(), f.Login, f.Password)
	f.noErr(err, "Login")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if i%2 == 1 {
				if _, err := login.Login(t.Context(), f.Login, wrong); errs.CodeOf(err) != errs.Unauthenticated {
					t.Errorf("a wrong password among others: %v", err)
				}
				return
			}
			if got, err := login.Login(t.Context(), f.Login, f.Password); err != nil || got != who {
				t.Errorf("a right password among others: %v, %v", got, err)
			}
		})
	}
	all.Wait()
}
