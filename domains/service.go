package domains

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Drivers returns every driver to any session, in the order of registration.
func (s *Service) Drivers(ctx context.Context) ([]Info, error) {
	_, err := actor.From(ctx)
	return slices.Clone(s.infos), err
}

// Driver returns one driver to a superuser. Errors: errs.Forbidden; errs.NotFound.
func (s *Service) Driver(ctx context.Context, id string) (Info, error) {
	if _, err := actor.Allowed(ctx, actor.SuperuserRead); err != nil {
		return Info{}, err
	}
	info, _, ok := s.driver(id)
	if !ok {
		return Info{}, errs.New(errs.NotFound, "Domain driver not found.")
	}
	return info, nil
}

// Info describes the driver of a type, which need not be registered any more.
func (s *Service) Info(id string) (Info, bool) {
	return s.info(id)
}

func (l *lookup) driver(id string) (Info, Driver, bool) {
	i := slices.IndexFunc(l.infos, func(i Info) bool { return i.ID == id })
	if i < 0 {
		return Info{}, nil, false
	}
	return l.infos[i], l.drivers[i], true
}

// List returns a page of the tenant's domains, without their configurations, to any session, sorted
// by name (the default), id, createdAt or updatedAt; q searches id, name and description. Errors:
// errs.Invalid for a sort or cursor that does not fit.
func (s *Service) List(ctx context.Context, q paging.Query) (paging.Page[Domain], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Domain]{}, err
	}
	return s.store.Page(ctx, a.Tenant, q)
}

// All returns every domain to any session, ordered by id; to others than superusers without the
// queries of addresses. An error ends it.
func (s *Service) All(ctx context.Context) iter.Seq2[Domain, error] {
	return paging.Load(func() ([]Domain, error) { return s.all(ctx) })
}

func (s *Service) all(ctx context.Context) ([]Domain, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.store.All(ctx, a.Tenant, "")
	for i, d := range all {
		if all[i] = s.masked(d); !a.Can(actor.SuperuserRead) {
			all[i] = withoutQueries(all[i])
		}
	}
	return all, err
}

// Get returns one domain to a superuser. Errors: errs.Forbidden; errs.NotFound.
func (s *Service) Get(ctx context.Context, id string) (Domain, error) {
	a, err := actor.Allowed(ctx, actor.SuperuserRead)
	if err != nil {
		return Domain{}, err
	}
	d, err := s.get(ctx, a.Tenant, id)
	if err != nil {
		return Domain{}, err
	}
	return s.shown(d), nil
}

// shown is masked with Unready.
func (s *Service) shown(d Domain) Domain {
	d.Unready = s.unready(d)
	return s.masked(d)
}

// unready returns the reason why nobody can log in at a domain, "" for none.
func (l *lookup) unready(d Domain) string {
	if d.ID == Local {
		return ""
	}
	err := l.usable(d)
	if code := errs.CodeOf(err); err != nil && code != errs.Invalid && code != errs.Upstream {
		return "Its secrets cannot be read with this service's key: send them again."
	}
	return errs.MessageOf(err)
}

// usable fails where nobody can log in at a domain, as far as that is known without asking its
// directory or provider. Errors: those of open; errs.Invalid naming the member of the
// configuration; errs.Upstream while its realm is Pausing.
func (l *lookup) usable(d Domain) error {
	realm, err := l.open(d)
	if err != nil {
		return err
	}
	if err := realm.Check(); err != nil {
		return inConfig(err)
	}
	if pausing, ok := realm.(Pausing); ok {
		return pausing.Paused()
	}
	return nil
}

var errNotFound = errs.New(errs.NotFound, "Domain not found.")

// Default returns the id of the tenant's default domain to any session.
func (s *Service) Default(ctx context.Context) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	return s.o.Tenants.DefaultDomain(ctx, a.Tenant)
}

// Content is how many users and teams a domain has.
type Content struct {
	ID           string
	Users, Teams int
}

// Contents returns the content of every domain, to any session, ordered by id.
func (s *Service) Contents(ctx context.Context) ([]Content, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	counts, err := s.o.Principals.DomainContent(ctx, a.Tenant)
	if err != nil {
		return nil, err
	}
	first := paging.Query{Sort: "id", Limit: paging.MaxLimit}
	all := paging.All(first, func(q paging.Query) (paging.Page[Domain], error) {
		return s.store.Page(ctx, a.Tenant, q)
	})
	var contents []Content
	for d, err := range all {
		if err != nil {
			return contents, err
		}
		contents = append(contents, Content{d.ID, counts[d.ID].Users, counts[d.ID].Teams})
	}
	return contents, nil
}

// Create adds a domain. It needs a superuser. ID, made of the name, times and Tenant are ignored.
// Errors: errs.Forbidden; errs.Invalid naming the field, also for the type local, and when all
// configurations of the tenant together would have more than 8 MiB; errs.Conflict for a taken id,
// and in a tenant with 1,000 domains.
//
// A provider is asked whether it is there before the domain is saved, in no transaction and for at
// most 15 seconds: errs.Invalid if not; see Unasked. Do not call it inside a transaction.
func (s *Service) Create(ctx context.Context, d Domain, o ...SaveOption) (Domain, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Domain{}, err
	}
	switch {
	case d.Name == nil || strings.TrimSpace(*d.Name) == "":
		return Domain{}, errs.New(errs.Invalid, "name is required")
	case d.Type == Local:
		return Domain{}, errs.New(errs.Invalid, "type must not be local: the one domain of that type is there already")
	}
	if slug.Of(*d.Name, "") == "" {
		return Domain{}, errs.New(
			errs.Invalid, "name must have a letter or digit that an id can be made of: a to z, 0 to 9",
		)
	}
	given := d.Config
	d.Tenant, d.ID, d.Config, d.Sealed, d.SealedKeys, d.ScannedAt =
		a.Tenant, slug.Of(*d.Name, "domain"), nil, "", "", nil
	d.IDs = IDAttributes{}
	c, err := s.accept(&d, d, given, "")
	if err != nil {
		return Domain{}, err
	}
	leave, err := s.takeTrial(ctx, a.Tenant)
	if err != nil {
		return Domain{}, err
	}
	defer leave()
	if err := s.discover(ctx, d, c, o); err != nil {
		return Domain{}, err
	}
	d.CreatedAt = s.clock.Stamp()
	d.UpdatedAt = d.CreatedAt
	of := entity.Subject{Kind: Kind, ID: d.ID, Action: entity.ActionCreate}
	err = s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		n, bytes, err := s.size(ctx, a.Tenant)
		if err == nil && n >= maxDomains {
			err = errs.New(errs.Conflict, "A tenant can have at most %d domains.", maxDomains)
		}
		if err == nil {
			err = fits(d.bytes(), 0, bytes)
		}
		if err == nil {
			err = s.checkRules(ctx, d, c.rules)
		}
		if err != nil {
			return err
		}
		if err := s.store.Insert(ctx, a.Tenant, d); err != nil {
			return err
		}
		return s.reschedule(ctx, d, "", c.rules.Schedule)
	})
	if err != nil {
		return Domain{}, err
	}
	s.opened(d, c)
	return s.shown(d), nil
}

// Update changes name, description, type and configuration of a domain. It needs a superuser. edit
// gets the configuration with its secrets masked; those that it leaves masked, or out, stay, unless
// they would go to another server then: errs.Invalid naming the secret that must be sent again.
// While users or teams have ids of the directory, these come from the same attributes: errs.Invalid
// for others. A provider is asked as by Create if the configuration changes; edit is called once
// more before that. Do not call it inside a transaction.
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid naming the field, also for another type of
// local, and as Create when the configuration grows; errs.Conflict if it was changed while the
// provider was asked; an error from edit as it is.
func (s *Service) Update(ctx context.Context, id string, edit func(*Domain) error, o ...SaveOption) (Domain, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Domain{}, err
	}
	if !slug.Valid(id) {
		return Domain{}, errNotFound
	}
	leave, err := s.takeTrial(ctx, a.Tenant)
	if err != nil {
		return Domain{}, err
	}
	defer leave()
	asked, keys, err := s.discoverEdit(ctx, a.Tenant, id, edit, o)
	if err != nil {
		return Domain{}, err
	}
	var d Domain
	var c change
	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionUpdate}
	err = s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		_, bytes, err := s.size(ctx, a.Tenant)
		if err != nil {
			return err
		}
		d, err = s.store.Update(ctx, a.Tenant, id, func(d *Domain) (err error) {
			if *d, err = s.withoutIDs(ctx, *d); err != nil {
				return err
			}
			if c, err = s.edit(d, edit, bytes, keys); err == nil && asked.is && !asked.same(c) {
				err = errs.New(errs.Conflict, "The configuration of the domain was changed meanwhile. Try again.")
			}
			return err
		})
		if err == nil && c.is {
			err = s.checkRules(ctx, d, c.rules)
		}
		if err == nil && c.is {
			err = s.reschedule(ctx, d, c.schedule, c.rules.Schedule)
		}
		return err
	})
	if err != nil {
		return Domain{}, err
	}
	if asked.is {
		c = asked
	}
	s.opened(d, c)
	return s.shown(d), nil
}

// size is Store.Size, which nobody changes before the transaction in ctx ends.
func (s *Service) size(ctx context.Context, tenant string) (n, bytes int, err error) {
	if err := s.store.LockTenant(ctx, tenant); err != nil {
		return 0, 0, err
	}
	return s.store.Size(ctx, tenant)
}

// bytes is what a domain's configuration takes of maxConfigs.
func (d Domain) bytes() int { return len(d.Config) + len(d.Sealed) }

// fits refuses a configuration that grows beyond what those of a tenant may have together. All are
// bytes.
func fits(now, before, others int) error {
	if now > before && now+others > maxConfigs {
		return errs.New(errs.Invalid,
			"config is too large: those of all domains of a tenant together may have %d bytes, and the others have %d",
			maxConfigs, others)
	}
	return nil
}

// edit changes a domain as edit says and as it may be; all are the bytes of the tenant's
// configurations, and keys those that were made for it, "" for none.
func (s *Service) edit(d *Domain, edit func(*Domain) error, all int, keys string) (change, error) {
	was := *d
	*d = s.masked(*d)
	if err := edit(d); err != nil {
		return change{}, err
	}
	given := d.Config
	d.Tenant, d.ID, d.Config, d.Sealed, d.ScannedAt, d.CreatedAt =
		was.Tenant, was.ID, was.Config, was.Sealed, was.ScannedAt, was.CreatedAt
	d.SealedKeys, d.IDs = was.SealedKeys, was.IDs
	s.touch(d, was)
	if (was.ID == Local || d.Type == Local) && d.Type != was.Type {
		return change{}, errs.New(errs.Invalid, "type must stay %s", was.Type)
	}
	c, err := s.accept(d, was, given, keys)
	if err != nil {
		return change{}, err
	}
	return c, fits(d.bytes(), was.bytes(), all-was.bytes())
}

// Delete removes a domain with its users and teams; what they own passes to the caller, in one
// transaction. It needs a superuser of another domain. Where it is the tenant's default domain,
// that is local from then on. Errors: errs.Forbidden; errs.NotFound; errs.Invalid for local;
// errs.Conflict when the caller is of the domain, when the tenant would be left without an enabled
// superuser, when another domain logs in its users, or while a scan of it runs.
func (s *Service) Delete(ctx context.Context, id string) error {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	if id == Local {
		return errs.New(errs.Invalid, "The domain local cannot be deleted.")
	}
	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}
	return s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, a.Tenant); err != nil { // before the note of a scan, as a scan does
			return err
		}
		d, err := s.get(ctx, a.Tenant, id)
		if err != nil {
			return err
		}
		if err := s.checkUnnamed(ctx, a.Tenant, id); err != nil {
			return err
		}
		if run, err := s.state(ctx, a.Tenant, id); err != nil || run.live(s.clock.Now()) {
			if err == nil {
				err = errs.New(errs.Conflict, "The domain is being scanned. Try again when that has ended.")
			}
			return err
		}
		if err := s.o.Tenants.ForgetDomain(ctx, a.Tenant, id); err != nil {
			return err
		}
		if err := s.o.Principals.RemoveDomain(ctx, a.Tenant, id, a.User); err != nil {
			return err
		}
		if err := s.reschedule(ctx, d, s.schedule(d), ""); err != nil {
			return err
		}
		return s.store.Delete(ctx, a.Tenant, id)
	})
}

// Permissions is what the caller may do with a domain.
type Permissions struct{ Edit, Delete, Write, Scan bool }

// Permissions returns what the caller may do with a domain, as far as Get shows it: see
// PermissionsOf. Errors: as Get.
func (s *Service) Permissions(ctx context.Context, id string) (Permissions, error) {
	d, err := s.Get(ctx, id)
	if err != nil {
		return Permissions{}, err
	}
	a, err := actor.From(ctx)
	return s.PermissionsOf(a, d), err
}

// PermissionsOf returns what an actor may do with a domain: a superuser all but delete local.
func (s *Service) PermissionsOf(a actor.Actor, d Domain) Permissions {
	all := a.Can(actor.Superuser)
	info, _ := s.info(d.Type)
	return Permissions{Edit: all, Write: all, Delete: all && d.ID != Local, Scan: all && info.ScanComponent != nil}
}

const (
	maxName        = 255     // characters
	maxDescription = 4 << 10 // bytes
	maxConfig      = 512 << 10
)

// accept checks a domain and merges the configuration that was given into it. was is the domain as
// it is stored, and keys are those that were made for it, "" for none.
func (s *Service) accept(d *Domain, was Domain, given json.RawMessage, keys string) (change, error) {
	if d.Name != nil {
		if strings.TrimSpace(*d.Name) == "" || utf8.RuneCountInString(*d.Name) > maxName || !plain(*d.Name) {
			return change{}, errs.New(
				errs.Invalid, "name must have 1 to %d characters, not blanks alone, and no control characters",
				maxName,
			)
		}
	}
	if d.Description != nil && (len(*d.Description) > maxDescription || !escapes.Storable(*d.Description)) {
		return change{}, errs.New(errs.Invalid, "description must have at most %d bytes of text", maxDescription)
	}
	info, driver, ok := s.driver(d.Type)
	if !ok {
		return change{}, errs.New(errs.Invalid, "type must be the id of a domain driver: see /api/domain-drivers")
	}
	c, err := s.configure(d, was, info, driver, given)
	if err != nil {
		return change{}, err
	}
	if c.is && c.realm != nil {
		if err := c.realm.Check(); errors.Is(err, errDenied) { // a name is looked up when it is connected to
			return change{}, inConfig(err)
		}
	}
	return c, s.setKeys(d, &c, driver, keys)
}

func plain(s string) bool {
	return escapes.Storable(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}
