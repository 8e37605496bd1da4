package ldap_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// heap is what is in use, in MiB.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

func TestManyPeopleMemory(t *testing.T) {
	each(t, func(tree *slapd.Tree) {
		tree.Crowd(20_000, 200, 60_000)
	}, func(t *testing.T, d domains.Driver, s *slapd.Server, _ *slapd.Tree) {
		is := is.New(t)
		realm := mustOpen(t, d, s.Config(s.URL, nil))
		before, most, people, members := heap(), 0, 0, 0
		began := time.Now()
		for e, err := range realm.Entries(t.Context()) {
			is.NoErr(err)
			if e.Person != nil {
				if people++; people%5000 == 0 {
					most = max(most, heap())
				}
				continue
			}
			members += len(e.Group.Members)
			is.Equal(len(e.Group.Members), 300)
		}
		t.Logf("%v, at most %d MiB more", time.Since(began), most-before)
		is.Equal(people, 20_000)
		is.Equal(members, 60_000)
		is.True(most-before < 40) // of which the page and what the ids take is all
	})
}

// TestDying: a directory that dies in the middle of page 3 returns an error, in its place or after
// what has come, and so does one that dies between two pages or stops talking.
func TestDying(t *testing.T) {
	tree := slapd.LDAP()
	tree.Crowd(1000, 10, 1000)
	s := slapd.Test(t, tree)
	for _, c := range []struct {
		name    string
		entries int
		proxy   func(int) (*slapd.Proxy, error)
		says    string
	}{
		{"before the first", 0, s.Cut, "broke off"},
		{"in the middle of page 3", 250, s.Cut, "broke off"},
		{"at the end of page 2", 200, s.Cut, "broke off"},
		{"among the groups", 1005, s.Cut, "broke off"},
		{"silence in the middle of page 3", 250, s.Stall, "does not answer in time (timeoutMs: 300)"},
		{"silence among the groups", 1005, s.Stall, "does not answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			p, err := c.proxy(c.entries)
			is.NoErr(err)
			defer p.Close()
			changed := map[string]any{"pageSize": 100}
			if strings.HasPrefix(c.name, "silence") {
				changed["timeoutMs"] = 300
			}
			realm := mustOpen(t, ldap.LDAP{}, s.Config(p.URL, changed))
			people, groups, err := everything(t.Context(), realm)
			saying(t, err, c.says)
			is.True(len(people) <= min(c.entries, 1000))
			is.Equal(len(groups), 0) // no group whose members nobody knows
		})
	}
}

// TestDyingBetweenPages: the connection ends when a page is whole and another one is to come.
func TestDyingBetweenPages(t *testing.T) {
	for _, late := range []time.Duration{0, 20 * time.Millisecond} {
		f := newFake(t, func(r asked) {
			if r.nth == 1 {
				r.person(1)
				r.end("more")
				time.Sleep(late)
			}
			r.Close()
		})
		people, _, err := everything(t.Context(), mustOpen(t, ldap.LDAP{}, f.config()))
		saying(t, err, "broke off")
		is.New(t).True(len(people) <= 1)
	}
}

// TestSizeLimit: a directory that returns a part of what was asked for says so, and that is an
// error.
func TestSizeLimit(t *testing.T) {
	is := is.New(t)
	tree := slapd.LDAP()
	tree.Crowd(600, 1, 1)
	s := slapd.Test(t, tree)
	realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{
		"bindDN":       tree.PersonDN(slapd.UserName(0)),
		"bindPassword": slapd.PasswordOf(slapd.UserName(0)), "pageSize": 200,
	}))
	people, groups, err := everything(t.Context(), realm)
	saying(t, err, "refuses a search below dc=example,dc=org (Size Limit Exceeded)")
	is.True(len(people) < 600)
	is.Equal(len(groups), 0)
}

// TestSlowReader: nothing is lost for a reader who takes longer than the directory may.
func TestSlowReader(t *testing.T) {
	is := is.New(t)
	tree := slapd.LDAP()
	tree.Crowd(1000, 1, 1)
	s := slapd.Test(t, tree)
	realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{"timeoutMs": 2000, "pageSize": 400}))
	n := 0
	for _, err := range realm.Entries(t.Context()) {
		is.NoErr(err)
		if n++; n == 1 || n == 400 { // in the middle of a page, and at its end
			time.Sleep(2500 * time.Millisecond)
		}
	}
	is.Equal(n, 1001)
}

// TestCancel: whoever cancels gets that error, and whoever sets a deadline one about the directory.
func TestCancel(t *testing.T) {
	is := is.New(t)
	tree := slapd.LDAP()
	tree.Crowd(1000, 1, 1)
	s := slapd.Test(t, tree)
	realm := mustOpen(t, ldap.LDAP{}, s.Config(s.URL, map[string]any{"pageSize": 100}))
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	var last error
	for _, err := range realm.Entries(ctx) {
		if n++; n == 250 {
			cancel()
		}
		last = err
	}
	is.True(errors.Is(last, context.Canceled))
	is.True(n < 1000)

	quiet := mustOpen(t, ldap.LDAP{}, s.Config(silent(t), nil))
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := quiet.Login(ctx, "jo", "pw")
	saying(t, err, "does not answer in time")
	is.True(time.Since(began) < 5*time.Second)
}
