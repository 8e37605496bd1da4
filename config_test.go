package tenantcontent_test

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/inputs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// nils are implementations of the interfaces of a Config. Tests use nil pointers to them.
type (
	nilDriver     struct{ bundles.Driver }
	nilDomain     struct{ domains.Driver }
	nilSource     struct{ datasets.Source }
	nilModel      struct{ ai.Provider }
	nilScripts    struct{ tenantcontent.Scripts }
	nilMail       struct{ messages.Sender }
	nilWorkspaces struct{ workspaces.Driver }
	nilTransferer struct{ entity.Transferer }
)

// TestBadConfig: Open refuses what no App can work with, naming the field, and does not panic.
func TestBadConfig(t *testing.T) {
	db := dbtest.SQLite(t)
	lookup := func(context.Context, string, string) (entity.Ref, error) { return entity.Ref{}, nil }
	dish := func(plural string) entity.Type {
		return entity.Type{Kind: "dish", Plural: plural, Commented: true, Lookup: lookup}
	}
	type config = tenantcontent.Config
	for _, c := range []struct {
		set  func(c *config)
		want string
	}{
		{func(c *config) { c.DB = nil }, "Config.DB is required"},
		{func(c *config) {
			c.BundleDrivers = []bundles.Driver{kitchen.Recipes{}, nil}
		}, "Config.BundleDrivers[1] is nil"},
		{func(c *config) {
			c.BundleDrivers = []bundles.Driver{(*nilDriver)(nil)}
		}, "Config.BundleDrivers[0] is a nil *tenantcontent_test.nilDriver"},
		{func(c *config) { c.DomainDrivers = []domains.Driver{nil} }, "Config.DomainDrivers[0] is nil"},
		{func(c *config) {
			c.DomainDrivers = []domains.Driver{(*nilDomain)(nil)}
		}, "Config.DomainDrivers[0] is a nil *"},
		{func(c *config) { c.Datasets = (*nilSource)(nil) }, "Config.Datasets is a nil *"},
		{func(c *config) { c.AI = (*nilModel)(nil) }, "Config.AI is a nil *"},
		{func(c *config) { c.Scripts = (*nilScripts)(nil) }, "Config.Scripts is a nil *"},
		{func(c *config) { c.Mail = (*nilMail)(nil) }, "Config.Mail is a nil *"},
		{func(c *config) { c.Workspaces = (*nilWorkspaces)(nil) }, "Config.Workspaces is a nil *"},
		{func(c *config) {
			c.Entities = []entity.Type{{Kind: "dish", Transferer: (*nilTransferer)(nil)}}
		}, "Config.Entities[0].Transferer is a nil *"},
		{func(c *config) { c.Entities = []entity.Type{{}} }, "entity kind \"\" is empty"},
		{func(c *config) { c.InputEditors = []inputs.Editor{{}} }, "An input editor needs an id."},
		{func(c *config) { c.Workers = []queue.Worker{{Kind: "mine"}} }, "The worker for the kind mine must have"},
		{func(c *config) {
			c.Workers = []queue.Worker{{Kind: "mine", Tries: -1}}
		}, "Config.Workers[0].Tries must not be negative: it is -1"},
		{func(c *config) { c.Queue.Grace = -time.Second }, "Config.Queue.Grace must not be negative: it is -1s"},
		{func(c *config) { c.AllowNetworks = make([]netip.Prefix, 1) }, "Config.AllowNetworks[0] is not a network"},
		{func(c *config) { c.DenyNetworks = make([]netip.Prefix, 1) }, "Config.DenyNetworks[0] is not a network"},
		{func(c *config) { c.TrustedProxies = make([]netip.Prefix, 1) }, "Config.TrustedProxies[0] is not a network"},
		{func(c *config) {
			c.Resume = func(context.Context, string, string) (actor.Actor, error) { return actor.Actor{}, nil }
		}, "Config.Resume is set and Config.Authenticate is not"},
		{func(c *config) {
			c.Entities = []entity.Type{dish("users")}
		}, `the Plural "users" of the kind "dish" is taken by the kind "user"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("reports")}
		}, `the Plural "reports" of the kind "dish" is taken by the kind "report"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("reports"), {Kind: "report"}}
		}, `the Plural "reports" of the kind "dish" is taken by the kind "report"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("tags")}
		}, `the Plural "tags" of the kind "dish" is taken by the kind "tag"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("apps")}
		}, `the Plural "apps" of the kind "dish" is taken by the kind "app"`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("colors")}
		}, `the Plural "colors" of the kind "dish" is taken by the route GET /api/colors`},
		{func(c *config) {
			c.Entities = []entity.Type{dish("comments")}
		}, `the Plural "comments" of the kind "dish" is taken by the route `},
		{func(c *config) {
			c.Entities = []entity.Type{dish("meals"), {Kind: "meal", Commented: true, Lookup: lookup}}
		}, `the Plural "meals" of the kind "meal" is taken by the kind "dish"`},
		{func(c *config) {
			c.Entities = []entity.Type{{Kind: "color", Commented: true, Lookup: lookup}}
		}, `the Plural "colors" of the kind "color" is taken by`},
	} {
		t.Run(c.want, func(t *testing.T) {
			is := is.New(t)
			config := config{DB: db, SecretKey: tenantcontent.NewSecretKey()}
			c.set(&config)
			_, err := tenantcontent.Open(config)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			if !strings.Contains(errs.MessageOf(err), c.want) {
				t.Errorf("the error %q does not contain %q", errs.MessageOf(err), c.want)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		is := is.New(t)
		_, err := tenantcontent.Open(config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), KeepActivities: -1,
			Authenticate: func(*http.Request) (actor.Actor, error) { return actor.Actor{}, nil },
			Entities: []entity.Type{
				dish("dishes"), {Kind: "app", Commented: true, Lookup: lookup},
				{Kind: "tag", Commented: true, Lookup: lookup},
			},
		})
		is.NoErr(err)
	})
}

// TestNegativeLimits: each number of a Config, also of its structs, is refused when it is negative.
func TestNegativeLimits(t *testing.T) {
	is := is.New(t)
	base := tenantcontent.Config{DB: dbtest.SQLite(t), SecretKey: tenantcontent.NewSecretKey()}
	numbers := 0
	var each func(name string, index []int, in reflect.Type)
	each = func(name string, index []int, in reflect.Type) {
		for i := range in.NumField() {
			f, at := in.Field(i), append(index[:len(index):len(index)], i)
			switch path := name + "." + f.Name; f.Type.Kind() {
			case reflect.Struct:
				each(path, at, f.Type)
			case reflect.Int, reflect.Int64:
				if path == "Config.KeepActivities" {
					continue
				}
				numbers++
				c := base
				reflect.ValueOf(&c).Elem().FieldByIndex(at).SetInt(-1)
				_, err := tenantcontent.Open(c)
				is.Equal(errs.CodeOf(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), path+" must not be negative"))
			}
		}
	}
	each("Config", nil, reflect.TypeFor[tenantcontent.Config]())
	is.True(numbers > 25)
}
