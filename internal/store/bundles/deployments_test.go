package bunstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/store/bundles"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestManyDeployments: the time to read them increases linearly with their number. If it were
// quadratic, it would be 8 s and more here.
func TestManyDeployments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, s := is.New(t), t.Context(), bunstore.New(open(t))
		all := make([]bundles.Deployment, 4000)
		ids := make([]string, len(all))
		for i := range all {
			ids[i] = fmt.Sprintf("color-%06d", i)
			all[i] = bundles.Deployment{Key: entity.Key{Kind: "color", ID: ids[i]}}
		}
		is.NoErr(s.SetDeployed(ctx, "acme", "evil", "bundle", all))
		begin := time.Now()
		got, err := s.Deployed(ctx, "acme", "evil", "bundle")
		is.NoErr(err)
		is.Equal(len(got), len(all))
		fingerprints, err := s.Fingerprints(ctx, "acme", "evil", "color", ids)
		is.NoErr(err)
		is.Equal(len(fingerprints), len(all))
		is.True(time.Since(begin) < 15*time.Second)
	})
}
