package domains

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// What a scan keeps in memory of one directory. An entry takes about 150 bytes beside its texts.
const (
	maxEntries = 1_000_000 // people and groups
	maxTexts   = 256 << 20 // bytes of all texts, ids and members
)

// maxRead is how long a scan may read one directory; maxScheduled is for one by a schedule.
const maxRead = 30 * time.Minute

// read takes the whole directory into memory: what is not whole changes nothing.
func (one *scanning) read(ctx context.Context) error {
	if one.from == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, one.limit)
	defer cancel()
	err := one.take(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return errs.Wrap(errs.Upstream, err,
			"The directory of the domain %s could not be read in %v: narrow its filters.",
			one.domain.ID, one.limit)
	}
	return err
}

func (one *scanning) take(ctx context.Context) error {
	defer one.show()
	texts := 0
	for e, err := range one.from.Entries(ctx) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := one.ids.add(one.domain.ID, e); err != nil {
			return err
		}
		if e.Person != nil {
			one.found.People = append(one.found.People, *e.Person)
			one.run.Users++
		}
		if e.Group != nil {
			one.found.Groups = append(one.found.Groups, *e.Group)
			one.run.Groups++
		}
		n := one.run.Users + one.run.Groups
		if texts += textsOf(e); n > maxEntries || texts > maxTexts {
			return errs.New(errs.Upstream,
				"The directory of the domain %s has more than %d entries or %d MiB: narrow its filters.",
				one.domain.ID, maxEntries, maxTexts>>20)
		}
		if n%100 == 0 {
			one.show()
		}
	}
	return nil
}

// textsOf counts the bytes of an entry. A member takes its place, too.
func textsOf(e Entry) (n int) {
	if p := e.Person; p != nil {
		n += len(p.ID) + len(p.Username) + len(p.DisplayName) + len(p.GivenName) + len(p.MiddleName) +
			len(p.FamilyName) +
			len(p.Email) + len(p.Timezone)
	}
	if g := e.Group; g != nil {
		n += len(g.ID) + len(g.Name) + len(g.Description)
		for _, id := range g.Members {
			n += len(id) + memberPlace
		}
	}
	return n
}

// memberPlace is the bytes of a text's place.
const memberPlace = 16
