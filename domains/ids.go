package domains

import (
	"context"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/errs"
)

// IDAttributes are the attributes of a directory that the ids of its people and of its groups come
// from; "" for one that is not known yet. The first login or scan that succeeds sets them: the same
// people and groups would be new ones with ids of another attribute.
type IDAttributes struct{ People, Groups string }

// IDDriver is a Driver of directories whose entries may have several attributes with an id, of
// which the account that reads sees more or fewer from one day to the next.
type IDDriver interface {
	Driver
	// OpenWithIDs is as Open, with ids that come from the given attributes alone. It returns
	// errs.Invalid, with a message that begins with the member at fault, if they come from other
	// ones by the configuration.
	OpenWithIDs(config json.RawMessage, ids IDAttributes) (Realm, error)
}

// add adds the attribute that the id of an entry comes from. It returns errs.Upstream if it is
// another one than that of entries before.
func (ids *IDAttributes) add(domain string, e Entry) error {
	of, attribute, who := &ids.People, "", ""
	switch {
	case e.Person != nil:
		attribute, who = e.Person.IDAttribute, e.Person.Username
	case e.Group != nil:
		of, attribute, who = &ids.Groups, e.Group.IDAttribute, e.Group.Name
	}
	if *of == "" || attribute == "" || *of == attribute {
		if attribute != "" {
			*of = attribute
		}
		return nil
	}
	return errs.New(errs.Upstream,
		"The directory of the domain %s shows ids in two attributes, %s and %s (of %s), so that some entries "+
			"would be new ones once "+
			"it shows the other attribute: let the account that reads see one of the two of all, or set idAttribute "+
			"to one that all have.",
		domain, *of, attribute, short(who))
}

// setIDs records the attributes that the ids of a domain come from, unless they are known. It
// returns errs.Upstream if others are known, and joins a transaction in ctx.
func (s *Service) setIDs(ctx context.Context, d Domain, ids IDAttributes) error {
	if (ids.People == "" || ids.People == d.IDs.People) && (ids.Groups == "" || ids.Groups == d.IDs.Groups) {
		return nil
	}
	known, err := s.store.SetIDs(ctx, d.Tenant, d.ID, ids)
	if err != nil {
		return err
	}
	return known.fits(d.ID, ids)
}

// fits returns errs.Upstream if the attributes that are known of a domain are others.
func (ids IDAttributes) fits(domain string, now IDAttributes) error {
	for _, one := range []struct{ of, known, now string }{
		{"users", ids.People, now.People}, {"teams", ids.Groups, now.Groups},
	} {
		if one.known != "" && one.now != "" && one.known != one.now {
			return errs.New(errs.Upstream,
				"The ids of the %s of the domain %s come from %s, and the directory shows %s: the same entries "+
					"would be new ones. "+
					"Let the account that reads see %s, too.", one.of, domain, one.known, one.now, one.known)
		}
	}
	return nil
}

// withoutIDs returns a domain without its IDs if no user or team of it has an id any more.
func (s *Service) withoutIDs(ctx context.Context, d Domain) (Domain, error) {
	if d.IDs == (IDAttributes{}) {
		return d, nil
	}
	counts, err := s.o.Principals.DomainContent(ctx, d.Tenant)
	if err == nil && counts[d.ID].Identified == 0 {
		d.IDs = IDAttributes{}
	}
	return d, err
}
