package principals

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// Principals returns every user and team of the tenant to any session, ordered by name ignoring
// case, then by id. A list that changes meanwhile may be returned partly as it was and partly as it
// is.
func (s *Service) Principals(ctx context.Context) iter.Seq2[Principal, error] {
	a, err := actor.From(ctx)
	if err != nil {
		return func(yield func(Principal, error) bool) { yield(Principal{}, err) }
	}
	return s.store.Principals(ctx, a.Tenant)
}

// Resolve finds a user by name, in any spelling of it, or a team by id for any session. Errors:
// errs.NotFound, also for Everyone, which has no page.
func (s *Service) Resolve(ctx context.Context, id string) (Principal, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Principal{}, err
	}
	return s.principal(ctx, a.Tenant, id)
}

func (s *Service) principal(ctx context.Context, tenant, id string) (Principal, error) {
	key, isID := canonicalID(id)
	if !isID && ValidOldUsername(id) != nil {
		return Principal{}, errs.New(errs.NotFound, "Principal not found.")
	}
	p, err := s.store.Principal(ctx, tenant, key)
	if isID || errs.CodeOf(err) != errs.NotFound {
		return p, err
	}
	spelled, failed := s.canonicalName(ctx, tenant, id)
	if failed != nil || spelled == id {
		return p, cmp.Or(failed, err)
	}
	return s.store.Principal(ctx, tenant, spelled)
}

// canonicalID returns a UUID in the one form that ids have, and any other text as it is.
func canonicalID(id string) (string, bool) {
	if key, ok := uuids.Parse(id); ok {
		return key, true
	}
	return id, false
}

// release moves everything that a principal owns to another one, in the transaction in ctx.
func (s *Service) release(ctx context.Context, tenant, from, to string) error {
	if to != "" {
		p, err := s.principal(ctx, tenant, to)
		if errs.CodeOf(err) == errs.NotFound || err == nil && p.ID == from {
			return errs.New(errs.Invalid, "reassignTo must be another user or team")
		}
		if err != nil {
			return err
		}
		to = p.ID
	}
	if err := s.store.LockPrincipals(ctx, tenant, []string{from, to}); err != nil {
		return err
	}
	return s.passOn(ctx, tenant, from, to)
}

// passOn moves what a locked principal owns to another one, "" for nobody, and fails with
// errs.Conflict when it owns anything then.
func (s *Service) passOn(ctx context.Context, tenant, from, to string) error {
	if s.content == nil {
		return nil
	}
	if to != "" {
		if _, err := s.content.Reassign(ctx, tenant, from, to); err != nil {
			return err
		}
	}
	owned, err := s.content.Owned(ctx, tenant, from)
	if err != nil || len(owned) == 0 {
		return err
	}
	var counts []string
	for kind, n := range owned {
		counts = append(counts, fmt.Sprintf("%s: %d", kind, n))
	}
	slices.Sort(counts)
	what := "%s owns content (%s): name another owner in reassignTo."
	if to != "" {
		what = "%s owns content that cannot be passed on (%s): remove it first."
	}
	return errs.New(errs.Conflict, what, from, strings.Join(counts, ", "))
}
