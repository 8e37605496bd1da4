// Package local implements the domain driver local, for the built-in realm. Its users have their
// passwords in this service.
//
// The root passes it to package domains before Config.DomainDrivers. It only describes the realm.
// Package principals checks the passwords.
package local

import (
	"bytes"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Driver is the driver local.
type Driver struct{}

// Info implements domains.Driver. The driver has no template, because each tenant has exactly one
// such domain.
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

// Open returns a realm without optional abilities. The configuration is an object, whose members
// are ignored, or null, or empty. Errors: errs.Invalid for any other JSON value.
func (Driver) Open(config json.RawMessage) (domains.Realm, error) {
	var members map[string]json.RawMessage
	if config = bytes.TrimSpace(config); len(config) > 0 && json.Unmarshal(config, &members) != nil {
		return nil, errs.New(errs.Invalid, "config must be a JSON object")
	}
	return realm{}, nil
}

// realm is a domains.Realm without optional abilities.
type realm struct{}

// Check implements domains.Realm.
func (realm) Check() error { return nil }
