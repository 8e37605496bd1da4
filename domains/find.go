package domains

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// CheckUser asks the directory of a domain for the person as whom a user would log in there: one
// with the username, or with the source id if that is not "". Directories that do not implement
// Finder, and other domains, are not asked. Do not call it inside a transaction: a directory may
// take 15 seconds.
//
// Errors: errs.NotFound for the domain; errs.Conflict with the reason if there is no such person,
// or who is disabled there; errs.Upstream if the directory cannot be asked; errs.Unavailable while
// too many domains are tried out.
func (l Lookup) CheckUser(ctx context.Context, tenant string, to principals.Move) error {
	id, username, sourceID := to.Domain, to.Username, to.SourceID
	d, err := l.of.get(ctx, tenant, id)
	if err != nil || id == Local {
		return err
	}
	realm, err := l.of.open(d)
	if err != nil {
		return err
	}
	directory, ok := realm.(Finder)
	if !ok {
		return nil
	}
	leave, err := l.of.takeTrial(ctx, tenant)
	if err != nil {
		return err
	}
	defer leave()
	limited, cancel := context.WithTimeout(ctx, l.of.checkTime)
	defer cancel()
	who, err := directory.Find(limited, username)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil && errs.CodeOf(err) != errs.NotFound:
		return errs.Wrap(
			errs.Upstream, err, "The directory of the domain %s has not said in %v whether it knows %s.", id,
			l.of.checkTime, username,
		)
	case errs.CodeOf(err) == errs.NotFound:
		return errs.Wrap(
			errs.Conflict, err, "The directory of the domain %s does not know %s: %s", id, username,
			errs.MessageOf(err),
		)
	case err != nil:
		return err
	case who.Disabled:
		return errs.New(errs.Conflict, "The account of %s is disabled in the directory of the domain %s.", username, id)
	case sourceID != "" && who.ID != sourceID:
		return errs.New(
			errs.Conflict, "sourceId is not that of %s in the directory of the domain %s, which is %s.",
			username, id, who.ID,
		)
	case sourceID == "" && fold.Name(who.Username) != fold.Name(username):
		return errs.New(errs.Conflict,
			"The user of %s in the directory of the domain %s has another name, %s: set sourceId to %s, too, and "+
				"a scan renames the user.",
			username, id, who.Username, who.ID)
	}
	return nil
}
