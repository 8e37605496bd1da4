package httpapi

import (
	"cmp"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// scannable adds the link that starts a scan below a path, for every session that may write,
// whether or not the driver can scan.
func (a domainRoutes) scannable(r *rest.Request, links hal.Links, path ...string) hal.Links {
	return whenWriting(r.Who, links, hal.Links{"inf:scan": {Href: a.href(append(path, "_scan")...)}})
}

// scanDriver serves POST /api/domain-drivers/{id}/_scan: 200 and what the scan of every domain with
// the driver did, of one with ?domain=. dryRun=true writes nothing; force=true disables many users,
// or removes many memberships, too. 400 for a driver that cannot scan; 404; 409 while another scan
// of the tenant runs, or with the counts when many would be; 502 when a directory cannot be read,
// or not in 30 minutes; 503 while two other tenants scan. A client that hangs up ends the scan;
// getScan shows how far it is.
func (a domainRoutes) scanDriver(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[scanInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	return scanReply(a.Domains.Scan(r.Context(), r.Param("id"), in.options()))
}

// scanDomain serves POST /api/domains/{id}/driver/_scan: as scanDriver, for one domain, which is
// all that domain may name.
func (a domainRoutes) scanDomain(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[scanInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.Domain != "" && in.Domain != r.Param("id") {
		return rest.Reply{}, errs.New(errs.Invalid, "domain must be that of the path, or left out")
	}
	return scanReply(a.Domains.ScanDomain(r.Context(), r.Param("id"), in.options()))
}

// scanInput are the options of a scan.
type scanInput struct {
	Domain string `json:"domain"`
	DryRun bool   `json:"dryRun"`
	Force  bool   `json:"force"`
}

func (in scanInput) options() domains.ScanOptions {
	return domains.ScanOptions{Domain: in.Domain, DryRun: in.DryRun, Force: in.Force}
}

// scanCounts are how many entries a scan has added and removed.
type scanCounts struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// scannedBody is what the scan of a domain has done.
type scannedBody struct {
	ID          string     `json:"id"`
	ScannedAt   *hal.Time  `json:"scannedAt"`
	Users       countsOf   `json:"users"`
	Teams       countsOf   `json:"teams"`
	Memberships scanCounts `json:"memberships"`
	Warnings    []string   `json:"warnings"`
	DurationMs  int64      `json:"durationMs"`
}

// scansBody is what a scan of domains has done.
type scansBody struct {
	Domains []scannedBody `json:"domains"`
}

func scanReply(all []domains.Scanned, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	rows := make([]scannedBody, len(all))
	for i, d := range all {
		rows[i] = scannedBody{
			d.ID, hal.OrNull(d.ScannedAt), countsOf(d.Users), countsOf(d.Teams), scanCounts{d.Added, d.Removed},
			append([]string{}, d.Warnings...), d.Duration.Milliseconds(),
		}
	}
	return rest.OK(scansBody{rows})
}

// countsOf counts what a scan did to users or teams.
type countsOf struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Disabled  int `json:"disabled"`
	Unchanged int `json:"unchanged"`
}

// testInput are the options of a test of a domain.
type testInput struct {
	Type     string          `json:"type"`
	Config   json.RawMessage `json:"config"`
	Username string          `json:"username"`
}

// newTestInput are those of a test of a configuration that is not saved yet.
type newTestInput struct {
	testInput
	ID string `json:"id"`
}

// testDomain serves POST /api/domains/{id}/_test {type?, config?, username?}: 200 {ok, steps:
// [{name, ok, message, person?, groups?}]}, what a login and a scan need, tried in turn up to the
// first step that fails; nothing is written. It tries what is stored, or another type and config,
// whose masked secrets are the stored ones if they go to the same server as before. username looks
// for that person. 400 for a driver that has no test; 404; 503 while too many domains are tried
// out.
func (a domainRoutes) testDomain(r *rest.Request) (rest.Reply, error) {
	if r.Param("id") == "" { // which would be a new one
		return rest.Reply{}, errs.New(errs.NotFound, "Domain not found.")
	}
	in, err := rest.Options[testInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.testReply(r, domains.Trial{ID: r.Param("id"), Type: in.Type, Config: in.Config, Username: in.Username})
}

// testNewDomain serves POST /api/domains/_test {type, config, username?, id?}: as testDomain,
// before a domain is saved. id is that of a stored one whose secrets are masked in the config.
// Without it, addresses to register at a provider have DOMAIN in place of the id that the domain
// gets.
func (a domainRoutes) testNewDomain(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[newTestInput](r)
	switch {
	case err != nil:
		return rest.Reply{}, err
	case in.Type == "":
		return rest.Reply{}, errs.New(errs.Invalid, "type is required")
	case in.Config == nil:
		return rest.Reply{}, errs.New(errs.Invalid, "config is required")
	}
	return a.testReply(r, domains.Trial{ID: in.ID, Type: in.Type, Config: in.Config, Username: in.Username})
}

// unsavedDomain stands for the id of a domain that is not saved yet, where people read it.
const unsavedDomain = "DOMAIN"

// testedPerson is the user whom a log-in of a test found.
type testedPerson struct {
	ID          string  `json:"id"`
	Username    string  `json:"username"`
	DisplayName *string `json:"displayName"`
	GivenName   *string `json:"givenName"`
	MiddleName  *string `json:"middleName"`
	FamilyName  *string `json:"familyName"`
	Email       *string `json:"email"`
	Timezone    *string `json:"timezone"`
	Disabled    bool    `json:"disabled"`
}

// testedGroup is a group of that user.
type testedGroup struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
}

// testStepBody is a step of the test of a domain.
type testStepBody struct {
	Name    string        `json:"name"`
	OK      bool          `json:"ok"`
	Message string        `json:"message"`
	Person  *testedPerson `json:"person,omitempty"`
	Groups  []testedGroup `json:"groups,omitempty"`
}

// domainTestBody is the result of the test of a domain.
type domainTestBody struct {
	OK    bool           `json:"ok"`
	Steps []testStepBody `json:"steps"`
}

func (a domainRoutes) testReply(r *rest.Request, t domains.Trial) (rest.Reply, error) {
	steps, err := a.Domains.Test(r.Context(), t, func(tenant, domain string) domains.Endpoints {
		return loginFlow(a).endpoints(tenant, cmp.Or(domain, unsavedDomain))
	})
	if err != nil {
		return rest.Reply{}, err
	}
	said := domainTestBody{true, []testStepBody{}}
	for _, tried := range steps {
		row := testStepBody{Name: tried.Name, OK: tried.OK, Message: tried.Message}
		if p := tried.Person; p != nil {
			row.Person = &testedPerson{
				p.ID, p.Username, orNull(p.DisplayName),
				orNull(p.GivenName), orNull(p.MiddleName), orNull(p.FamilyName), orNull(p.Email),
				orNull(p.Timezone), p.Disabled,
			}
		}
		for _, g := range tried.Groups {
			row.Groups = append(row.Groups, testedGroup{g.ID, g.Name, orNull(g.Description)})
		}
		said.OK = said.OK && tried.OK
		said.Steps = append(said.Steps, row)
	}
	return rest.OK(said)
}

// scanBody is how far the scan of a domain is.
type scanBody struct {
	Phase      *string   `json:"phase"`
	DryRun     bool      `json:"dryRun"`
	Users      int       `json:"users"`
	Groups     int       `json:"groups"`
	Written    int       `json:"written"`
	Total      int       `json:"total"`
	StartedAt  *hal.Time `json:"startedAt"`
	FinishedAt *hal.Time `json:"finishedAt"`
	LastError  *string   `json:"lastError"`
	NextScanAt *hal.Time `json:"nextScanAt"`
}

// Relations implements openapi.Related.
func (scanBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:domain"}}
}

// getScan serves GET /api/domains/{id}/scan: 200 and the scan of the domain that runs, or ran last:
// phase (reading, writing, done, failed; null for none), what was read and written so far, when,
// the last error, and when its schedule scans it next; 404.
func (a domainRoutes) getScan(r *rest.Request) (rest.Reply, error) {
	run, err := a.Domains.ScanState(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	next, err := a.Domains.NextScan(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	var started *hal.Time
	if !run.StartedAt.IsZero() {
		started = hal.OrNull(&run.StartedAt)
	}
	return rest.OK(hal.Resource{Links: hal.Self(a.href(
		"domains", r.Param("id"), "scan",
	)).With("inf:domain", a.href("domains", r.Param("id"))),
		Value: scanBody{
			orNull(string(run.Phase)), run.DryRun, run.Users, run.Groups, run.Written, run.Total, started,
			hal.OrNull(run.FinishedAt), orNull(run.Error), hal.OrNull(next),
		}})
}
