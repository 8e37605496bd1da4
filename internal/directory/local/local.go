// Package local is the domain driver local: the built-in realm, whose people have their passwords
// in this service.
//
// The root passes it to domains before Config.DomainDrivers. It only describes the realm:
// principals checks the passwords.
package local

import (
	"bytes"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Driver is the driver local.
type Driver struct{}

// Info describes the driver. There is no template for it, as there is one such domain in each
// tenant and no more.
func (Driver) Info() domains.Info {
	return domains.Info{
		ID:              "local",
		Name:            "Local",
		Group:           "Local",
		LoginComponent:  "local-login",
		LoginMethod:     "POST",
		UsernameParam:   "username",
		PasswordParam:   "password",
		ManagesPassword: true,
		Members:         []string{},
	}
}

// Open returns a realm that can do nothing by itself. It knows no member: the configuration is an
// object, or null or nothing as the one domain of this type has none. Errors: errs.Invalid for
// every other JSON value.
func (Driver) Open(config json.RawMessage) (domains.Realm, error) {
	var members map[string]json.RawMessage
	if config = bytes.TrimSpace(config); len(config) > 0 && json.Unmarshal(config, &members) != nil {
		return nil, errs.New(errs.Invalid, "config must be a JSON object")
	}
	return realm{}, nil
}

// realm has no ability.
type realm struct{}

// Check implements domains.Realm.
func (realm) Check() error { return nil }
