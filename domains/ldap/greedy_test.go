package ldap_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
)

// TestLongValuesMemory: of long values no more stays in memory than what is kept of them.
func TestLongValuesMemory(t *testing.T) {
	is := is.New(t)
	const people = 2000
	long := strings.Repeat("x", 20_000)
	f := newFake(t, func(r asked) {
		if r.nth == 1 {
			for n := range people {
				name := fmt.Sprint("p", n)
				r.entry("uid="+name+",dc=x", "entryUUID", name, "uid", name, "cn", long, "mail", long)
			}
		}
		r.end("")
	})
	before, most := heap(), 0
	var kept []domains.Identity
	for e, err := range mustOpen(t, ldap.LDAP{}, f.config()).Entries(t.Context()) {
		is.NoErr(err)
		if kept = append(kept, *e.Person); len(kept)%500 == 0 {
			most = max(most, heap())
		}
	}
	is.Equal(len(kept), people)
	is.True(most-before < 60) // of 80 MiB; 4 are kept, and a slow machine has more under way
}

// TestGreedyLogin: a login takes little from a directory.
func TestGreedyLogin(t *testing.T) {
	f := newFake(t, func(r asked) {
		r.entry("uid=p1,dc=x", "entryUUID", "id-p1", "uid", "p1", "cn", strings.Repeat("x", 100_000))
		r.end("")
	})
	_, err := mustOpen(t, ldap.LDAP{}, f.config()).Login(t.Context(), "p1", "secret")
	saying(t, err, "sends more than")
}
