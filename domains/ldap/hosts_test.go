package ldap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

type errorText string

func (e errorText) Error() string { return string(e) }

func has(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("%q does not have %q", got, want)
	}
}

// TestHealth: a dead host is asked last, and after a while by one caller alone.
func TestHealth(t *testing.T) {
	is := is.New(t)
	h := health{until: make([]time.Time, 3)}
	now := time.Now()
	is.Equal(h.order(now), []int{0, 1, 2})
	h.note(0, false, now)
	is.Equal(h.order(now.Add(deadFor-1)), []int{1, 2, 0})
	is.Equal(h.order(now.Add(deadFor)), []int{0, 1, 2}) // this one tries it
	is.Equal(h.order(now.Add(deadFor)), []int{1, 2, 0}) // and nobody else meanwhile
	h.note(0, true, now.Add(deadFor))
	is.Equal(h.order(now.Add(deadFor)), []int{0, 1, 2})
	for i := range 3 {
		h.note(i, false, now)
	}
	is.Equal(h.order(now), []int{0, 1, 2}) // better than none
}

func TestUnreachedIsNoCode(t *testing.T) {
	err := errors.New("x")
	is.New(t).True(errors.Is(errUnreached{err}, err))
}
