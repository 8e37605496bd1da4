package ldap

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	for _, want := range []time.Duration{
		20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute, maxPause, maxPause,
	} {
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

	leave, err := a.turn(t.Context())
	is.NoErr(err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.turn(ctx) // while another bind runs
	is.True(errors.Is(err, context.Canceled))
	leave()
}

// TestTurns: while the answer to a bind is awaited, no other one is made, however long it takes.
func TestTurns(t *testing.T) {
	why := errors.New("refused")
	for name, c := range map[string]struct {
		answer func(a *account)
		binds  int32 // at once, afterwards
	}{
		"accepted": {func(a *account) { a.accepted("") }, 8},
		"refused":  {func(a *account) { a.refused(why) }, 0},
		"silent":   {func(*account) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				is, a := is.New(t), newAccount()
				leave, err := a.turn(t.Context())
				is.NoErr(err)
				var binds, refused atomic.Int32
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						leave, err := a.turn(ctx)
						switch {
						case errors.Is(err, why):
							refused.Add(1)
						case err == nil:
							binds.Add(1)
							<-ctx.Done()
							leave()
						}
					})
				}
				time.Sleep(time.Minute)
				is.Equal(binds.Load(), int32(0))
				c.answer(a)
				leave()
				time.Sleep(time.Minute)
				is.Equal(binds.Load(), c.binds)
				is.Equal(refused.Load() > 0, name == "refused")
				cancel()
				all.Wait()
			})
		})
	}
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
		{
			[]goldap.Control{behera(2, -1, 3)}, false, "its password must be changed first",
			"its password has expired and works 3 times more",
		},
		{[]goldap.Control{behera(5, -1, -1)}, false, "", ""}, // of changes alone
		{[]goldap.Control{behera(-1, 90, -1)}, false, "", "its password expires in 1m30s"},
		{[]goldap.Control{behera(-1, 1<<62, -1)}, false, "", "its password expires in 277777h46m40s"},
		{[]goldap.Control{behera(-1, -1, 1)}, false, "", "its password has expired and works once more"},
		{[]goldap.Control{behera(0, -1, 1)}, false, "", "its password has expired and works once more"},
		// 389 Directory Server
		{[]goldap.Control{old, behera(-1, -1, 2)}, false, "", "its password has expired and works 2 times more"},
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
