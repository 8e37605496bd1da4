package domains

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

// Trial is a configuration to try out.
type Trial struct {
	ID       string          // of a stored domain, whose masked secrets Config has; "" for none
	Type     string          // default that of the stored domain
	Config   json.RawMessage // default that of the stored domain
	Username string          // of a person to look for, "" for any
}

// maxTrial is how long one may take: a step of a directory with several hosts waits for each.
const maxTrial = time.Minute

// Test tries a configuration out: step by step, up to the first one that fails. It writes nothing,
// and holds no transaction. at returns the addresses for the provider of a domain, "" for one that
// is not stored yet. It needs a superuser. As in Update, stored secrets are sent to no other server
// than before.
//
// Errors: errs.Forbidden; errs.NotFound for the domain; errs.Invalid naming the field, and for a
// driver that is no Tester; errs.Unavailable while too many domains are tried out.
func (s *Service) Test(ctx context.Context, t Trial, at func(tenant, domain string) Endpoints) ([]Step, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	if t.Username != "" && !plain(t.Username) {
		return nil, errs.New(errs.Invalid, "username must be text without control characters")
	}
	d := Domain{Tenant: a.Tenant}
	if t.ID != "" {
		if !slug.Valid(t.ID) {
			return nil, errNotFound
		}
		if d, err = s.get(ctx, a.Tenant, t.ID); err != nil {
			return nil, err
		}
	}
	if d, err = s.withoutIDs(ctx, d); err != nil {
		return nil, err
	}
	o, err := s.trial(d, t)
	if err != nil {
		return nil, err
	}
	tester, ok := o.realm.(Tester)
	if !ok {
		return nil, errs.New(errs.Invalid, "type %s cannot be tried out: its driver has no test", o.of.driver)
	}
	leave, err := s.takeTrial(ctx, a.Tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, maxTrial)
	defer cancel()
	steps := tester.Test(limited, at(a.Tenant, d.ID), t.Username)
	for _, step := range steps {
		if !step.OK {
			return steps, ctx.Err()
		}
	}
	more, err := s.testAccounts(ctx, a.Tenant, o.rules, t.Username)
	return append(steps, more...), err
}

// trial opens the configuration of a trial; d is the stored domain, if there is one.
func (s *Service) trial(d Domain, t Trial) (opened, error) {
	if t.Type == "" && t.Config == nil && d.ID != "" {
		return s.openWithRules(d)
	}
	was, given := d, t.Config
	if t.Type != "" {
		d.Type = t.Type
	}
	if given == nil {
		given = s.masked(was).Config
	}
	info, driver, ok := s.driver(d.Type)
	if !ok {
		return opened{}, errs.New(errs.Invalid, "type must be the id of a domain driver: see /api/domain-drivers")
	}
	c, stored, err := s.merge(&d, was, info, driver, given)
	if err != nil {
		return opened{}, err
	}
	if d.ID != "" && c.realm != nil && c.stays(d, was, stored) {
		return s.openWithRules(was) // which may pause
	}
	if c.realm == nil {
		return opened{}, errs.New(errs.Invalid, "config is required")
	}
	return opened{settings{driver: d.Type}, c.realm, c.rules}, nil
}

// testAccounts returns the step accounts, which finds the user of another domain as whom a person
// would log in, for rules with Accounts; no step for others.
func (s *Service) testAccounts(ctx context.Context, tenant string, r rules, username string) ([]Step, error) {
	if r.Accounts == "" {
		return nil, nil
	}
	step := Step{Name: "accounts", OK: true}
	switch err := s.checkRules(ctx, Domain{Tenant: tenant}, rules{Accounts: r.Accounts}); {
	case errs.CodeOf(err) == errs.Invalid:
		step.OK, step.Message = false, errs.MessageOf(err)
		return []Step{step}, nil
	case err != nil:
		return nil, err
	case r.AccountsBy != byUsername || username == "":
		step.Message = fmt.Sprintf(
			"The users of the domain %s log in here, found by %s. A log-in shows who somebody is.", r.Accounts,
			r.AccountsBy,
		)
		return []Step{step}, nil
	}
	known, err := s.accountName(ctx, tenant, r.Accounts, username)
	if errs.CodeOf(err) == errs.Upstream {
		step.OK, step.Message = false, errs.MessageOf(err)
		return []Step{step}, nil
	}
	if err != nil {
		return nil, err
	}
	switch found, err := s.o.Principals.Accounts(ctx, tenant, r.Accounts, known.Username); {
	case err != nil:
		return nil, err
	case known.Disabled || known.Locked:
		step.OK, step.Message = false, fmt.Sprintf(
			"The directory of the domain %s has disabled or locked %s.", r.Accounts, short(username),
		)
	case !found:
		step.OK, step.Message = false, fmt.Sprintf(
			"No user of the domain %s has the name %s: scan it first.", r.Accounts, short(username),
		)
	default:
		step.Message = fmt.Sprintf(
			"%s would log in as the user %s of the domain %s.", short(username), known.Username, r.Accounts,
		)
	}
	return []Step{step}, nil
}
