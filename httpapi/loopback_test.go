package httpapi_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/httpapi"
	bindings "github.com/tenantcontent/tenantcontent/internal/scripts"
)

// TestLoopbackBeforeNew: a script that runs before the routes are served is told so.
func TestLoopbackBeforeNew(t *testing.T) {
	_, err := new(httpapi.Loopback).Call(t.Context(), bindings.Request{Method: "GET", Path: "colors"})
	is.New(t).Equal(errs.CodeOf(err), errs.Unavailable)
}
