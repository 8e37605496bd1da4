package datasetstest_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/content/datasets/datasetstest"
	"github.com/tenantcontent/tenantcontent/entity"
)

// warehouse is the host's Source.
var warehouse datasets.Source

// A test of the host's package calls Test.
func ExampleTest() {
	_ = testing.InternalTest{Name: "TestWarehouse", F: func(t *testing.T) {
		datasetstest.Test(t, func(t *testing.T) datasetstest.Fixture {
			return datasetstest.Fixture{
				Source: warehouse, Actor: actor.Actor{Tenant: "acme", User: "jo"}, Elsewhere: "evil",
				Dataset: entity.Ref{Kind: "dataset", ID: "01932e00-0000-7000-8000-000000000001", Name: "Sales"},
			}
		})
	}}
}
