package ldap

import (
	"strings"
	"testing"
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
	s := &scan{conn: &conn{realm: &realm{groupMember: "member", url: "ldap://x"}}, memberships: maxMemberships - 1}
	e := goldap.NewEntry("cn=g", map[string][]string{"member": {"a"}})
	_, err := s.members(&group{}, e)
	is.NoErr(err)
	_, err = s.members(&group{}, e)
	is.Equal(errs.CodeOf(err), errs.Upstream)
}

// TestHeavyComesAlone: a large message waits until those before it were taken.
func TestHeavyComesAlone(t *testing.T) {
	is := is.New(t)
	f := framesOf(nil)
	f.messages.Store(3)
	waited := make(chan struct{})
	go func() {
		f.alone()
		close(waited)
	}()
	select {
	case <-waited:
		t.Fatal("it did not wait")
	default:
	}
	f.taken.Add(1)
	f.taken.Add(1)
	<-waited
	f.messages.Add(1)
	f.settle()
	f.alone()
	is.Equal(f.taken.Load(), int64(4))
}
