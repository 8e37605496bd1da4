package local_test

import (
	"encoding/json"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/local"
)

var _ domains.Driver = local.Driver{}

func TestDriver(t *testing.T) {
	drivertest.Test(t, local.Driver{}, drivertest.Fixture{Config: json.RawMessage(`{}`)})
}

func TestInfo(t *testing.T) {
	is := is.New(t)
	info := local.Driver{}.Info()

	is.Equal(info.ID, "local")
	is.Equal(info.LoginMethod, "POST")
	is.Equal([]string{info.UsernameParam, info.PasswordParam}, []string{"username", "password"})
	is.True(info.ManagesPassword)
	is.True(info.ScanComponent == nil)
	is.True(info.Defaults == nil) // no template
	is.Equal(len(info.Secrets), 0)
}

func TestRealmCanDoNothingByItself(t *testing.T) {
	for _, config := range []string{"", "null", "{}", ` {"unknown": [1]} `} {
		t.Run(config, func(t *testing.T) {
			is := is.New(t)
			realm, err := local.Driver{}.Open(json.RawMessage(config))
			is.NoErr(err)

			_, password := realm.(domains.PasswordLogin)
			_, redirect := realm.(domains.RedirectLogin)
			_, metadata := realm.(domains.Metadata)
			_, directory := realm.(domains.Directory)
			is.Equal([]bool{password, redirect, metadata, directory}, []bool{false, false, false, false})
		})
	}
}

func TestBadConfig(t *testing.T) {
	for _, config := range []string{`[]`, `"x"`, `7`, `{`, `true`} {
		t.Run(config, func(t *testing.T) {
			is := is.New(t)
			_, err := local.Driver{}.Open(json.RawMessage(config))
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), "config must be a JSON object")
		})
	}
}
