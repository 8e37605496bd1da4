package domains

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

// Way is one way to log in, as far as strangers may know it: nothing of where the directory or
// provider is, nor of what type.
type Way struct {
	Domain        string // id
	Name          string // of the domain, for people
	Redirect      bool   // at a provider, where the browser is sent; false: with a password
	AnswersByForm bool   // see Info
	UsernameParam string // members of the body of a login with a password
	PasswordParam string
	Default       bool // the tenant's default domain
}

// localWay is all that strangers see of a tenant that does not exist.
var localWay = Way{Domain: Local, Name: "Local", UsernameParam: "username", PasswordParam: "password", Default: true}

// Ways returns how people log in at a tenant, the default domain first and the others ordered by
// name: all domains that are ready and not hidden. A tenant that does not exist looks like one that
// has the domain local alone. What is returned may be a second old, and must not be changed.
// Errors: errs.Busy when too many ask for it from the client's network, or of a tenant.
func (u Unchecked) Ways(ctx context.Context, tenant string) ([]Way, error) {
	if !slug.Valid(tenant) { // which no tenant is called
		return []Way{localWay}, nil
	}
	leave, err := u.s.takeWays(ctx, tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	return u.s.ways.Get(ctx, tenant, "", func() ([]Way, error) { return u.s.readWays(ctx, tenant) })
}

// How many callers learn at once how to log in. Those of one tenant wait for each other, so that
// one of them reads and the others find it cached.
const (
	maxLearning     = 8
	maxLearningFrom = 64 // from one client network, also waiting
	maxLearn        = 5 * time.Second
)

func (s *Service) takeWays(ctx context.Context, tenant string) (leave func(), err error) {
	network := actor.OriginOf(ctx).Network()
	from, err := s.places.learnFrom.Acquire(ctx, 1, network)
	if err == nil {
		of, failed := s.places.learn.Acquire(ctx, 1, tenant, network)
		if failed == nil {
			return func() {
				of()
				from()
			}, nil
		}
		from()
		err = failed
	}
	if errors.Is(err, limiter.ErrBusy) {
		err = errs.Wrap(errs.Busy, err, "Too many people ask how to log in at the moment. Try again later.")
	}
	return nil, err
}

func (s *Service) readWays(ctx context.Context, tenant string) ([]Way, error) {
	first, err := s.o.Tenants.DefaultDomain(ctx, tenant)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return nil, err
	}
	all, err := s.store.All(ctx, tenant, "") // also of a tenant that does not exist, so that it takes as long
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return []Way{localWay}, nil
	}
	ways := []Way{}
	for _, d := range all {
		if w, ok := s.wayOf(d); ok {
			w.Default = w.Domain == first
			ways = append(ways, w)
		}
	}
	slices.SortFunc(ways, func(a, b Way) int {
		if a.Default != b.Default {
			if a.Default {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(fold.Text(a.Name), fold.Text(b.Name)), cmp.Compare(a.Domain, b.Domain))
	})
	return ways, nil
}

// wayOf returns how people log in at a domain. It reports false if nobody can, or if the domain is
// hidden.
func (s *Service) wayOf(d Domain) (Way, bool) {
	info, _ := s.info(d.Type)
	if r, err := readRules(info, d.Config); err != nil || r.Hidden {
		return Way{}, false
	}
	if d.ID == Local {
		w := localWay
		if d.Name != nil {
			w.Name = *d.Name
		}
		return w, true
	}
	realm, err := s.realm(d)
	if err != nil || realm.Check() != nil {
		return Way{}, false
	}
	w := Way{Domain: d.ID, Name: d.ID, AnswersByForm: info.AnswersByForm}
	if d.Name != nil {
		w.Name = *d.Name
	}
	switch realm.(type) {
	case RedirectLogin:
		w.Redirect = true
	case PasswordLogin:
		w.UsernameParam, w.PasswordParam = cmp.Or(
			info.UsernameParam, localWay.UsernameParam,
		), cmp.Or(info.PasswordParam, localWay.PasswordParam)
	default:
		return Way{}, false
	}
	return w, true
}
