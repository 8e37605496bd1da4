package domains

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

// Lookup finds domains and opens them with their drivers, without their users. It checks no
// permission, as Unchecked does. principals needs it, whose Service the Service of domains needs.
type Lookup struct{ of *lookup }

// LookupOptions configure a Lookup. All are required.
type LookupOptions struct {
	Store   Store
	Keys    Sealer
	Drivers []Driver // in the order in which they are listed, each with its own id
}

// lookup has what a Lookup and a Service share.
type lookup struct {
	store     Store
	sealer    Sealer
	drivers   []Driver
	infos     []Info
	realms    realms
	trials    *limiter.Limiter // of domains that are saved or tried out, by tenant
	checkTime time.Duration    // the time limit of a password's check by a directory
}

// NewLookup returns a Lookup. Errors: errs.Invalid for a driver without an id, or two with one.
func NewLookup(o LookupOptions) (Lookup, error) {
	l := &lookup{
		store: o.Store, sealer: o.Keys, drivers: o.Drivers, realms: realms{opened: map[place]opened{}},
		trials:    limiter.New(limiter.Options{Capacity: maxTrials, PerKey: maxTrialsOf, Timeout: maxWait}),
		checkTime: maxCheck,
	}
	for _, d := range o.Drivers {
		info := d.Info()
		if info.ID == "" || slices.ContainsFunc(l.infos, func(i Info) bool { return i.ID == info.ID }) {
			return Lookup{}, errs.New(
				errs.Invalid, "the domain driver %q has no id, or one that another has", info.ID,
			)
		}
		l.infos = append(l.infos, withOwnMembers(info))
	}
	return Lookup{l}, nil
}

// CheckKnown returns errs.Invalid if a tenant has no domain with an id.
func (l Lookup) CheckKnown(ctx context.Context, tenant, id string) error {
	_, err := l.of.get(ctx, tenant, id)
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
	}
	return err
}

// CheckUsable returns errs.Conflict with the reason if a user of a domain could not log in, as far
// as that is known without asking its directory or provider.
func (l Lookup) CheckUsable(ctx context.Context, tenant, id string) error {
	d, err := l.of.get(ctx, tenant, id)
	if err != nil || id == Local {
		return err
	}
	if why := l.of.unready(d); why != "" {
		return errs.New(errs.Conflict, "A user of the domain %s could not log in: %s", id, why)
	}
	o, err := l.of.openWithRules(d)
	if err == nil && o.rules.Accounts != "" {
		err = errs.New(
			errs.Conflict,
			"A user of the domain %s could not log in: it logs in those of the domain %s, so let the user be of "+
				"that one",
			id, o.rules.Accounts,
		)
	}
	return err
}

// CheckEmail returns errs.Forbidden if people log in, at another domain, as the user of a domain
// with their e-mail address.
func (l Lookup) CheckEmail(ctx context.Context, tenant, id string) error {
	named, err := l.of.naming(ctx, tenant, id, func(r rules) bool { return r.AccountsBy == byEmail })
	if err == nil && named != "" {
		err = errs.New(
			errs.Forbidden,
			"Only a superuser may change the email of a user of the domain %s: people log in by it at the domain %s.",
			id, named,
		)
	}
	return err
}

// info returns what describes the driver of a type.
func (l *lookup) info(id string) (Info, bool) {
	info, _, ok := l.driver(id)
	return info, ok
}

// get also spares the database what cannot be an id: a login brings both.
func (l *lookup) get(ctx context.Context, tenant, id string) (Domain, error) {
	if !slug.Valid(id) || !plain(tenant) {
		return Domain{}, errNotFound
	}
	return l.store.Get(ctx, tenant, id)
}
