package bundles_test

import (
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// meddling is a library porter that does something when the first rows are exported.
type meddling struct {
	entity.FilePorter
	meddle func()
}

func (m meddling) Export(ctx ctx, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	m.meddle()
	return m.FilePorter.Export(ctx, tenant, ids)
}

// TestLeaveIsAskedAgain: a tenant that takes back its leave while the bundle is exported is not deployed to.
func TestLeaveIsAskedAgain(t *testing.T) {
	for _, targets := range [][]string{{"evil"}, {"evil", "acme"}, {"acme", "evil"}} {
		dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
			is, db := is.New(t), open(t)
			w := newWorld(t, db)
			b := w.bundle(t, "B", "library "+w.make(t, "acme", "library", "L", `{}`))
			revoke := sync.OnceFunc(func() {
				_, err := w.Tenants.Update(w.as(t, "evil"), func(s *tenants.Tenant) error { s.Settings.DeployFrom = nil; return nil })
				is.NoErr(err)
			})
			s := opened(t, db, libraries(w, func(p entity.FilePorter) entity.Porter { return meddling{p, revoke} }))
			before := w.dump(t, "evil")
			done, err := s.Bundles.Deploy(w.as(t, "acme"), b.ID, targets, bundles.How{})
			is.Equal(w.dump(t, "evil"), before)
			if targets[0] == "evil" { // nothing is deployed anywhere
				is.Equal(errs.CodeOf(err), errs.Forbidden)
				is.True(strings.Contains(errs.MessageOf(err), `"evil"`))
				is.True(!strings.Contains(w.dump(t, "acme"), "tc_deployments"))
				return
			}
			is.NoErr(err)
			is.NoErr(done[0].Err)
			is.Equal(errs.CodeOf(done[1].Err), errs.Forbidden)
		})
	}
}
