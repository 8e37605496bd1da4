package transfer

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/text/slug"
)

// freeSlugs changes the slugs of a deploy from another tenant that other entities have, each to the
// first of slug-2, slug-3… that is free. A conflict would reveal to the caller what the tenant has,
// so only users of the tenant are notified. An entity that got such a number before keeps it while
// the slug is taken.
func (p Transferer[T]) freeSlugs(ctx context.Context, b *Batch[T]) error {
	s := slugs[T]{p: p, b: b, claimed: map[string]bool{}, holders: map[string]string{}, leaves: Set(b.Over)}
	var other []*T
	for i := range b.Write {
		item := &b.Write[i]
		switch natural := p.Natural(*item); natural {
		case "":
		case s.before(item):
			s.claimed[natural] = true
		default:
			other = append(other, item)
		}
	}
	for some := range Chunks(IDs(other, func(item *T) string { return p.Natural(*item) })) {
		if err := s.ask(ctx, some); err != nil {
			return err
		}
	}
	for _, item := range other {
		if err := s.choose(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// slugs finds free slugs for the entities of a batch.
type slugs[T any] struct {
	p       Transferer[T]
	b       *Batch[T]
	claimed map[string]bool   // natural ids that entities of the batch have now
	holders map[string]string // natural ids that were looked up, to the ids of their entities, or ""
	leaves  map[string]bool   // ids of entities that get another natural id, or have claimed theirs
}

// before returns the natural id that an entity has in the tenant, or "".
func (s slugs[T]) before(item *T) string {
	if old, exists := s.b.There[s.p.ID(*item)]; exists {
		return s.p.Natural(old)
	}
	return ""
}

func (s slugs[T]) ask(ctx context.Context, naturals []string) error {
	taken, err := s.p.Taken(ctx, s.b.Tenant, naturals)
	for _, natural := range naturals {
		s.holders[natural] = taken[natural]
	}
	return err
}

// free reports whether an entity may have a natural id that was looked up.
func (s slugs[T]) free(item *T, natural string) bool {
	holder := s.holders[natural]
	return !s.claimed[natural] && (holder == "" || holder == s.p.ID(*item) || s.leaves[holder])
}

// choose sets the natural id of an entity to the one in its row, the numbered one that it has, or
// the first that is free.
func (s slugs[T]) choose(ctx context.Context, item *T) error {
	wanted, natural := s.p.Natural(*item), ""
	owner, of := wanted[:len(wanted)-len(slugOf(wanted))], slugOf(wanted)
	if s.free(item, wanted) {
		s.claimed[wanted] = true
		return nil
	}
	if before := s.before(item); !s.claimed[before] && strings.HasPrefix(before, owner) &&
		slug.IsNumbered(slugOf(before), of) {
		natural = before
	}
	for n, window := 2, 8; natural == ""; window = min(2*window, chunk) {
		some := make([]string, window)
		for i := range some {
			some[i] = owner + slug.Numbered(of, n+i)
		}
		n += window
		if err := s.ask(ctx, some); err != nil {
			return err
		}
		for _, try := range some {
			if natural == "" && s.free(item, try) {
				natural = try
			}
		}
	}
	s.claimed[natural] = true
	s.p.Rename(item, slugOf(natural))
	if s.b.into.Notify != nil {
		s.b.into.Notify(fmt.Sprintf(
			"%s %s has the slug %s here: %s belongs to another one.", s.p.Kind, s.p.ID(*item), slugOf(natural),
			of,
		))
	}
	return nil
}
