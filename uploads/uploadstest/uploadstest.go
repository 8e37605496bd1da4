// Package uploadstest checks that an uploads.Store keeps its promises, and uploads.Service over it. Tests of stores import
// it.
package uploadstest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/blobs/files/filestest"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/uploads"
)

// TestStore runs all checks. open returns empty stores of rows and blobs, whose database has the tenants acme and evil.
func TestStore(t *testing.T, open func(t *testing.T) uploads.Options) {
	t.Run("Store", func(t *testing.T) {
		filestest.TestStore(t, func(t *testing.T) uploads.Store { return open(t).Store })
	})
	t.Run("Service", func(t *testing.T) {
		filestest.TestService(t, "upload", func(t *testing.T, set filestest.Settings) filestest.Service {
			o := open(t)
			o.Now, o.NewID = set.Now, set.NewID
			return uploads.New(o)
		})
	})
	for name, check := range map[string]func(*testing.T, uploads.Options){
		"SuperuserSees": testSuperuser,
		"Delete":        testDelete,
		"Limit":         testLimit,
		"Lifetime":      testLifetime,
		"Quota":         testQuota,
		"Forget":        testForget,
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			o.NewID = func() string { return filestest.ID }
			check(t, o)
		})
	}
}

func create(t *testing.T, s *uploads.Service) {
	t.Helper()
	_, err := s.Create(filestest.As(t, "acme", "jo"), "a", "", strings.NewReader("x"))
	is.New(t).NoErr(err)
}

func testQuota(t *testing.T, o uploads.Options) {
	n := 0
	o.Quota, o.NewID = 5, func() string { n++; return fmt.Sprintf("01932e00-0000-7000-8000-%012d", n) }
	is, s, jo := is.New(t), uploads.New(o), filestest.As(t, "acme", "jo")
	_, err := s.Create(jo, "a", "", strings.NewReader("123"))
	is.NoErr(err)
	_, err = s.Create(jo, "b", "", strings.NewReader("123"))
	is.Equal(errs.CodeOf(err), errs.TooLarge) // 2 bytes are left
	_, err = s.Create(jo, "c", "", strings.NewReader("12"))
	is.NoErr(err)
	_, err = s.Create(jo, "d", "", strings.NewReader(""))
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	_, err = s.Create(filestest.As(t, "acme", "mia"), "e", "", strings.NewReader("12345"))
	is.NoErr(err) // each user has as much
	_, err = s.Create(filestest.As(t, "evil", "jo"), "f", "", strings.NewReader("12345"))
	is.NoErr(err)
}

func testForget(t *testing.T, o uploads.Options) {
	is, s := is.New(t), uploads.New(o)
	create(t, s)
	deleted, jo := s.Hooks().Deleted, entity.Key{Kind: entity.KindUser, ID: "jo"}
	is.NoErr(deleted(t.Context(), "evil", jo))
	is.NoErr(deleted(t.Context(), "acme", entity.Key{Kind: entity.KindUser, ID: "mia"}, entity.Key{Kind: "team", ID: "jo"}))
	_, err := s.Get(filestest.As(t, "acme", "jo"), filestest.ID)
	is.NoErr(err) // another tenant's and another user's stay
	users := []entity.Key{jo}
	for n := range 600 { // more than are asked about at once
		users = append(users, entity.Key{Kind: entity.KindUser, ID: fmt.Sprint("user", n)})
	}
	slices.Reverse(users)
	is.NoErr(deleted(t.Context(), "acme", users...))
	_, err = s.Get(filestest.As(t, "acme", "jo"), filestest.ID)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = o.Blobs.Open(t.Context(), "acme", filestest.ID)
	is.Equal(errs.CodeOf(err), errs.NotFound) // the bytes are gone, too
}

func testSuperuser(t *testing.T, o uploads.Options) {
	is, s, root := is.New(t), uploads.New(o), filestest.As(t, "acme", "root")
	create(t, s)
	u, err := s.Get(root, filestest.ID)
	is.NoErr(err)
	is.Equal(u.Username, "jo")
	_, r, err := s.Open(root, filestest.ID)
	is.NoErr(err)
	is.NoErr(r.Close())
	is.NoErr(s.Delete(root, filestest.ID))
}

func testDelete(t *testing.T, o uploads.Options) {
	is, s, jo := is.New(t), uploads.New(o), filestest.As(t, "acme", "jo")
	create(t, s)
	is.Equal(errs.CodeOf(s.Delete(filestest.As(t, "acme", "mo"), filestest.ID)), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(filestest.As(t, "evil", "jo"), filestest.ID)), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(filestest.As(t, "evil", "root"), filestest.ID)), errs.NotFound)
	is.Equal(errs.CodeOf(s.Delete(t.Context(), filestest.ID)), errs.Unauthenticated)
	is.Equal(errs.CodeOf(s.Delete(jo, "x")), errs.NotFound)
	is.NoErr(s.Delete(jo, strings.ToUpper(filestest.ID)))
	is.Equal(errs.CodeOf(s.Delete(jo, filestest.ID)), errs.NotFound)
	filestest.Hidden(t, jo, s)
	create(t, s) // the bytes are gone too: the id is free
}

func testLimit(t *testing.T, o uploads.Options) {
	o.Limit = 2<<20 + 5
	is, s, jo := is.New(t), uploads.New(o), filestest.As(t, "acme", "jo")
	_, err := s.Create(jo, "a", "", bytes.NewReader(make([]byte, o.Limit+1)))
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	filestest.Hidden(t, jo, s)
	u, err := s.Create(jo, "a", "", bytes.NewReader(make([]byte, o.Limit)))
	is.NoErr(err)
	is.Equal(u.Size, o.Limit)
}

func testLifetime(t *testing.T, o uploads.Options) {
	now := time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	o.Now, o.Lifetime = func() time.Time { return now }, time.Minute
	s, jo := uploads.New(o), filestest.As(t, "acme", "jo")
	create(t, s)
	_, err := s.Get(jo, filestest.ID)
	is.New(t).NoErr(err)
	now = now.Add(time.Minute)
	filestest.Hidden(t, jo, s)
	is.New(t).Equal(errs.CodeOf(s.Delete(jo, filestest.ID)), errs.NotFound)
}
