package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

func TestZeroValueIsTheMachinesClock(t *testing.T) {
	is := is.New(t)
	for _, c := range []clock.Clock{{}, clock.New(nil, nil)} {
		before := time.Now()
		is.True(c.Real())
		is.True(!c.Now().Before(before))
		is.True(time.Since(c.Now()) < time.Minute)
		first, second := c.NewID(), c.NewID()
		is.True(uuids.Valid(first))
		is.True(uuids.Valid(second))
		is.True(first < second) // ids are in the order of time
	}
}

func TestClockOfOthers(t *testing.T) {
	is := is.New(t)
	at := time.Date(2026, 5, 4, 12, 0, 0, 1999, time.FixedZone("", 3600))
	c := clock.New(func() time.Time { return at }, func() string { return "one" })
	is.True(!c.Real())
	is.Equal(c.Now(), at)
	is.Equal(c.Stamp(), time.Date(2026, 5, 4, 11, 0, 0, 1000, time.UTC))
	is.Equal(c.NewID(), "one")
}

func TestEachEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun, n := time.Now(), 0
		for range clock.Each(ctx, time.Minute) {
			n++
			is.Equal(time.Since(begun), time.Duration(n)*time.Minute)
			if n == 3 {
				cancel()
			}
		}
		is.Equal(n, 3)
		for range clock.Each(t.Context(), time.Minute) {
			break
		}
		is.Equal(time.Since(begun), 4*time.Minute)
	})
}
