package ldap

import (
	"context"
	"errors"
	"testing"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
)

// TestPauses: they double up to the longest, and end with a bind that is accepted.
func TestPauses(t *testing.T) {
	is := is.New(t)
	now := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	a := newAccount()
	a.now = func() time.Time { return now }
	why := errors.New("refused")
	for _, want := range []time.Duration{20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute, maxPause, maxPause} {
		leave, err := a.turn(t.Context())
		is.NoErr(err)
		is.Equal(a.refused(why).Sub(now), want)
		leave()
		is.Equal(a.refused(why).Sub(now), want) // of another bind that ran
		now = now.Add(want - time.Second)
		_, err = a.turn(t.Context())
		is.True(errors.Is(err, why))
		is.True(errors.Is(a.paused(), why))
		now = now.Add(time.Second)
		is.NoErr(a.paused())
	}
	back, news := a.accepted("")
	is.True(back && !news)
	is.Equal(a.refused(why).Sub(now), firstPause)
	now = now.Add(firstPause)
	back, news = a.accepted("expires")
	is.True(back && news)
	back, news = a.accepted("expires")
	is.True(!back && !news)

	_, err := a.turn(t.Context())
	is.NoErr(err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.turn(ctx) // while another bind runs
	is.True(errors.Is(err, context.Canceled))
}

func TestPolicyOf(t *testing.T) {
	behera := func(err int8, expire, grace int64) goldap.Control {
		return &goldap.ControlBeheraPasswordPolicy{Error: err, Expire: expire, Grace: grace}
	}
	old, soon := &goldap.ControlVChuPasswordMustChange{MustChange: true}, &goldap.ControlVChuPasswordWarning{Expire: 60}
	for _, c := range []struct {
		controls         []goldap.Control
		bindRefused      bool
		refusal, warning string
	}{
		{nil, false, "", ""},
		{[]goldap.Control{behera(-1, -1, -1)}, false, "", ""},
		{[]goldap.Control{behera(0, -1, -1)}, true, "its password has expired", ""},
		{[]goldap.Control{behera(1, -1, -1)}, true, "it is locked", ""},
		{[]goldap.Control{behera(2, -1, -1)}, false, "its password must be changed first", ""},
		{[]goldap.Control{behera(2, -1, 3)}, false, "its password must be changed first", "its password has expired and works 3 times more"},
		{[]goldap.Control{behera(5, -1, -1)}, false, "", ""}, // of changes alone
		{[]goldap.Control{behera(-1, 90, -1)}, false, "", "its password expires in 1m30s"},
		{[]goldap.Control{behera(-1, 1<<62, -1)}, false, "", "its password expires in 277777h46m40s"},
		{[]goldap.Control{behera(-1, -1, 1)}, false, "", "its password has expired and works once more"},
		{[]goldap.Control{behera(0, -1, 1)}, false, "", "its password has expired and works once more"},
		{[]goldap.Control{old, behera(-1, -1, 2)}, false, "", "its password has expired and works 2 times more"}, // 389 Directory Server
		{[]goldap.Control{old}, false, "its password must be changed first", ""},
		{[]goldap.Control{old}, true, "its password has expired", ""},
		{[]goldap.Control{behera(1, -1, -1), old}, true, "it is locked", ""},
		{[]goldap.Control{soon}, false, "", "its password expires in 1m0s"},
	} {
		p := policyOf(&goldap.SimpleBindResult{Controls: c.controls}, c.bindRefused)
		if p.refusal != c.refusal || p.warning != c.warning {
			t.Errorf("%v: %+v", c.controls, p)
		}
	}
	is.New(t).Equal(policyOf(nil, true), policy{})
}

// TestRedacted: a password is masked unless that would tell it.
func TestRedacted(t *testing.T) {
	for _, c := range []struct{ text, password, want string }{
		{"bind of x with long secret", "long secret", "bind of x with ********"},
		{"xlong secretx", "long secret", "x********x"},
		{"a bad password, a!", "a", "a bad password, a!"},
		{"error, data 52e, v3839", "52e", "error, data 52e, v3839"},
		{"password mia1 of mia12 is 'mia1'", "mia1", "password ******** of mia12 is '********'"},
		{"mia1mia1 mia1", "mia1", "mia1mia1 ********"},
		{"ümia1 mia1ü", "mia1", "ümia1 mia1ü"},
	} {
		if got := redacted(goldap.NewError(49, errors.New(c.text)), c.password).(*goldap.Error).Err.Error(); got != c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}
