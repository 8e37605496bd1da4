package ldap

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

// TestValuesAreCut: what is kept of a value is still too long for its field, and is text.
func TestValuesAreCut(t *testing.T) {
	is := is.New(t)
	for _, letter := range []string{"x", "ü", "€", "🎨"} {
		e := goldap.NewEntry("uid=x", map[string][]string{"cn": {strings.Repeat(letter, 20_000)}})
		got := textOf(e, "CN", maxValue)
		is.True(len(got) <= maxValue+2) // the sign for half a letter takes three bytes
		is.True(utf8.ValidString(got) && utf8.RuneCountInString(got) > 255)
		got = textOf(e, "cn", maxDescription)
		is.True(len(got) <= maxDescription+2 && utf8.RuneCountInString(got) > 16*1024)
	}
}

// TestTooManyMembers: tiny members take more memory than they have bytes.
func TestTooManyMembers(t *testing.T) {
	is := is.New(t)
	s := &scan{
		conn:        &conn{realm: &realm{groupMember: "member"}, host: &host{url: "ldap://x"}},
		memberships: maxMemberships - 1,
	}
	e := goldap.NewEntry("cn=g", map[string][]string{"member": {"a"}})
	_, err := s.members(&group{}, e)
	is.NoErr(err)
	_, err = s.members(&group{}, e)
	is.Equal(errs.CodeOf(err), errs.Upstream)
}

// TestHeavyComesAlone: a message that is large, or has many elements, waits until those before it
// were taken, for a second at most.
func TestHeavyComesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		// after returns how long a message waits that comes after another one, which is taken so
		// much later, -1 for never.
		after := func(second []byte, taken time.Duration) time.Duration {
			first := message(300)
			f := framesOf(append(first, second...))
			_, err := io.ReadFull(f, make([]byte, len(first)))
			is.NoErr(err)
			if taken >= 0 {
				time.AfterFunc(taken, f.settle)
			}
			synctest.Wait()
			begun := time.Now()
			_, err = io.ReadFull(f, make([]byte, len(second)))
			is.NoErr(err)
			return time.Since(begun)
		}
		for _, large := range [][]byte{message(heavy), message(make([]int, heavy/elementBytes)...)} {
			is.Equal(after(large, 95*time.Millisecond), 100*time.Millisecond)
			is.Equal(after(large, 0), time.Duration(0))
			is.Equal(after(large, -1), time.Second)
		}
		is.Equal(after(message(heavy/2), -1), time.Duration(0))
	})
}
