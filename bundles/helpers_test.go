package bundles_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/paging"
)

type ctx = context.Context

func pageOf(n int) paging.Query { return paging.Query{Limit: n} }

// circle changes what an entity's data says.
func circle(t testing.TB, w *world, kind entity.Kind, id, data string) {
	t.Helper()
	_, err := w.Content.Update(w.as(t, "acme"), kind, id, func(e *content.Entity) error {
		e.Data = json.RawMessage(data)
		return nil
	})
	is.New(t).NoErr(err)
}

// libraries puts another transferer in the place of that of libraries.
func libraries(w *world, wrap func(entity.FileTransferer) entity.Transferer) func(*tenantcontent.Config) {
	return func(c *tenantcontent.Config) {
		for _, kind := range w.Content.Unchecked().Types() {
			if kind.Kind == content.Library {
				kind.Transferer = wrap(kind.Transferer.(entity.FileTransferer))
				c.Entities = []entity.Type{kind}
			}
		}
	}
}
