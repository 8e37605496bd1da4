package tenants

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
)

var (
	idForm     = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	domainForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)
)

// local is the id of the domain that every tenant has.
const local = "local"

// The most entries that the lists of Settings may have.
const (
	maxLicenses   = 100
	maxLicense    = 64 // characters
	maxDeployFrom = 1000
)

// ValidID reports whether a text has the form of a tenant's id.
func ValidID(id string) bool { return idForm.MatchString(id) }

// accept checks name and settings and fills in what was left out. Errors: errs.Invalid naming the
// field.
func (t *Tenant) accept() error {
	t.Name = strings.TrimSpace(t.Name)
	if !line(t.Name, 255) {
		return errs.New(errs.Invalid, "name must be 1 to 255 characters without control characters")
	}
	set := &t.Settings
	if set.DefaultDomain == "" {
		set.DefaultDomain = local
	}
	if !domainForm.MatchString(set.DefaultDomain) {
		return errs.New(errs.Invalid, "settings.defaultDomain must be the id of a domain")
	}
	if len(set.Licenses) > maxLicenses || len(set.DeployFrom) > maxDeployFrom {
		return errs.New(
			errs.Invalid, "settings may have at most %d licenses and %d tenants in deployFrom", maxLicenses,
			maxDeployFrom,
		)
	}
	for i, l := range set.Licenses {
		if !line(l, maxLicense) {
			return errs.New(
				errs.Invalid, "settings.licenses[%d] must be 1 to %d characters without control characters", i,
				maxLicense,
			)
		}
	}
	seen := make(map[string]bool, len(set.DeployFrom))
	for i, from := range set.DeployFrom {
		switch {
		case !ValidID(from.Tenant):
			return errs.New(
				errs.Invalid,
				"settings.deployFrom[%d] must be the id of a tenant, or {tenant, runAs} with a username", i,
			)
		case seen[from.Tenant]:
			return errs.New(errs.Invalid, "settings.deployFrom[%d] has the tenant %s once more", i, from.Tenant)
		case from.RunAs != "" && !line(from.RunAs, 256):
			return errs.New(
				errs.Invalid, "settings.deployFrom[%d].runAs must be the username of a user of the tenant", i,
			)
		}
		seen[from.Tenant] = true
	}
	if set.Licenses == nil {
		set.Licenses = []string{}
	}
	if set.DeployFrom == nil {
		set.DeployFrom = []Source{}
	}
	return nil
}

// line reports whether s is one line of 1 to most characters.
func line(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most &&
		!strings.ContainsFunc(s, unicode.IsControl)
}
