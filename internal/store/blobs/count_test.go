package bunstore_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestCount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), bunstore.New(open(t))
		add := func(tenant, id string) {
			w, err := s.Create(t.Context(), tenant, id, 10, time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC))
			is.NoErr(err)
			_, err = w.Write([]byte("x"))
			is.NoErr(err)
			_, err = w.Commit(t.Context())
			is.NoErr(err)
		}
		add("acme", "a")
		add("acme", "b")
		add("evil", "a")
		for tenant, want := range map[string]int{"acme": 2, "evil": 1, "none": 0} {
			n, err := s.Count(t.Context(), tenant)
			is.NoErr(err)
			is.Equal(n, want)
		}
	})
}
