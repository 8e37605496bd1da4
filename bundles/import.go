package bundles

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/limits/spool"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// ImportOptions has the options of an import.
type ImportOptions struct {
	Rule  entity.Rule // default Skip; Overwrite of a deploy
	Owner string      // principal id that gets the rows whose owner is not known here; default: the caller
	// do everything, and roll it back: on SQLite in a private copy of the database, for which no
	// writer waits
	DryRun bool
	// Changes lists each row in ImportResult.Changes, and distinguishes rows that exist with the
	// same content. A dry run with the rule Fail does not fail for these then.
	Changes bool
}

// Counts counts rows by what was done with them. Unchanged rows exist with the same content; they
// are counted only with ImportOptions.Changes, and otherwise are among the updated ones or, with
// the rule Skip, the skipped ones.
type Counts struct {
	Created, Updated, Unchanged, Skipped, Deleted int
}

// ImportResult is the result of an import.
type ImportResult struct {
	Counts
	ByKind   map[entity.Kind]Counts
	Warnings []string // sentences for people, at most 1,000
	Changes  []Change // nil without ImportOptions.Changes
	Archive  *Backup  // of what a restore or deploy replaced; nil if it replaced nothing, and after a dry run
}

const (
	// maxImports is how many archives are imported at once, each with a connection and another one
	// to read an upload. Imports into one tenant would hold theirs while they wait for each other.
	maxImports = 4
	maxWait    = 30 * time.Second
)

// Import reads an archive into the caller's tenant, in one transaction. It needs a superuser.
//
// The archive is read twice: first to check it to its end, then to import it. A reader that cannot
// seek, such as a request's body, is copied to a temporary file first, so that a slow sender holds
// no transaction. Imports, restores and deploys into one tenant wait for each other, up to 30
// seconds, before their transactions begin, but not if the caller already has a transaction.
//
// Errors: errs.Forbidden; errs.Invalid for a bad archive, option or row, naming it; errs.Conflict
// naming the row, with the rule Fail, or when something else has its slug; errs.Unavailable when
// other imports take too long; errs.TooLarge for an archive that is too large or takes longer than
// Options.Time; r's own, as they are. After an error nothing is written.
func (s *Service) Import(ctx context.Context, r io.Reader, o ImportOptions) (ImportResult, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return ImportResult{}, err
	}
	o.Rule = cmp.Or(o.Rule, entity.Skip)
	return s.importArchive(ctx, a, r, o, false)
}

// Restore replaces all rows of the caller's tenant of every kind that an archive has or counts: it
// imports the archive's rows with the rule Overwrite and removes the others, except, with a
// warning, the caller's own user, the new owner of what the others owned, and the last superuser.
// It first stores an archive of all rows of those kinds, and warns of what that archive cannot
// restore: what is removed with the rows, such as passwords and comments, see entity.Hooks. It does
// not warn of password expiry, locks, and what users have seen of their feeds. It waits as Import
// does, and needs a superuser. The stored archive is made in the transaction, so that it has
// exactly what is removed and overwritten; on SQLite other writes wait for that, too.
// Errors: as Import; errs.Invalid if the stored archive would exceed the Limits, so that it could
// not be restored.
func (s *Service) Restore(ctx context.Context, r io.Reader, o ImportOptions) (ImportResult, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return ImportResult{}, err
	}
	o.Rule = entity.Overwrite
	return s.importArchive(ctx, a, r, o, true)
}

func (s *Service) importArchive(
	ctx context.Context, a actor.Actor, r io.Reader, o ImportOptions, restore bool,
) (_ ImportResult, err error) {
	kind := "import"
	if restore {
		kind = "restore"
	}
	ctx, observed := s.started(ctx, a.Tenant, kind)
	defer func() { s.ended(ctx, observed, err) }()
	if err := o.check(); err != nil {
		return ImportResult{}, err
	}
	in, end, err := s.again(r)
	if err != nil {
		return ImportResult{}, err
	}
	defer end()
	observed.Received = s.sizeOf(in)
	c, err := s.survey(in)
	if err != nil {
		return ImportResult{}, err
	}
	return s.importAs(ctx, a.Tenant, in, o, func(ctx context.Context) (*plan, error) {
		if restore {
			return s.planRestore(ctx, a, c, o)
		}
		return s.planImport(ctx, a, c, o)
	})
}

// importAs plans and imports an archive into a tenant in one transaction.
func (s *Service) importAs(
	ctx context.Context, tenant string, in io.ReadSeeker, o ImportOptions,
	decide func(context.Context) (*plan, error),
) (result ImportResult, err error) {
	err = s.transaction(ctx, tenant, o, func(ctx context.Context) error {
		p, err := decide(ctx)
		if err != nil {
			return err
		}
		result, err = p.write(ctx, in)
		return err
	})
	if err != nil {
		return ImportResult{}, err
	}
	if o.DryRun {
		result.Archive = nil
	}
	return result, nil
}

func (o ImportOptions) check() error {
	if !slices.Contains([]entity.Rule{entity.Skip, entity.Overwrite, entity.Fail}, o.Rule) {
		return errs.New(errs.Invalid, "updateRule must be one of skip, overwrite and fail")
	}
	return nil
}

// transaction waits for other imports into the tenant and runs fn in a transaction, which is rolled
// back if it takes too long. Errors: fn's own; errs.Unavailable; errs.TooLarge.
func (s *Service) transaction(
	ctx context.Context, tenant string, o ImportOptions, fn func(context.Context) error,
) error {
	if !s.store.InTransaction(ctx) {
		leave, err := s.imports.Acquire(ctx, 1, tenant)
		if err != nil {
			return limiter.Unavailable(err, "Other imports are under way. Try again.")
		}
		defer leave()
	}
	run, bound := s.store.InTx, "for which others cannot write"
	if o.DryRun {
		run, bound = s.store.DryRun, "which is the limit for the import itself, too"
	}
	late := errs.New(errs.TooLarge,
		"This takes longer than %v, %s: nothing was changed. Send less at once, or have the operator raise the limit: "+
			"Config.MaxImportTime in a program, TENANTCONTENT_MAX_IMPORT_TIME for the server.", s.time, bound)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err := run(ctx, func(ctx context.Context) error {
		limit := time.AfterFunc(s.time, func() { stop(late) })
		defer limit.Stop() // a commit is not interrupted
		return fn(ctx)
	})
	if err != nil && context.Cause(ctx) == late {
		return late
	}
	return err
}

// owner returns the owner for rows whose own owner the tenant does not have: the named one, else
// the caller or, if the caller is no user of the tenant, its first superuser.
func (s *Service) owner(ctx context.Context, tenant, caller, named string) (string, error) {
	who := cmp.Or(named, caller)
	if id, ok := uuids.Parse(named); ok {
		who = id // a team's, in either case
	} else if named != "" {
		var err error
		if who, err = s.principals.CanonicalName(ctx, tenant, named); err != nil {
			return "", err
		}
	}
	known, err := s.principals.Known(ctx, tenant, []string{who})
	switch {
	case err != nil || known[who] && who != "*":
		return who, err
	case named != "":
		return "", errs.New(errs.Invalid, "owner must be a user or team of the tenant")
	}
	return s.firstSuperuser(ctx, tenant, caller)
}

// firstSuperuser returns the first superuser of a tenant by name, otherwise when it has none.
func (s *Service) firstSuperuser(ctx context.Context, tenant, otherwise string) (string, error) {
	supers, err := s.principals.Superusers(ctx, tenant)
	if err != nil || len(supers) == 0 {
		return otherwise, err
	}
	return supers[0], nil
}

// again returns a reader of an archive that can seek, copying it to a temporary file if necessary.
// end removes the file.
func (s *Service) again(r io.Reader) (in io.ReadSeeker, end func(), err error) {
	if in, ok := r.(io.ReadSeeker); ok {
		return in, func() {}, nil
	}
	return s.spool(func(w io.Writer) error {
		n, err := io.Copy(w, io.LimitReader(r, s.size+1))
		if err == nil && n > s.size {
			return errs.New(errs.TooLarge, "The archive must have at most %d bytes.", s.size)
		}
		return err
	})
}

// sizeOf returns the size of an archive, or 0 if it is not known or the service has no Observer. It
// leaves the position as it is.
func (s *Service) sizeOf(in io.Seeker) int64 {
	if s.observer == nil {
		return 0
	}
	at, err := in.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	size, err := in.Seek(0, io.SeekEnd)
	if _, back := in.Seek(at, io.SeekStart); err != nil || back != nil {
		return 0 // what reads it next fails, too
	}
	return size
}

// spool returns a temporary file with what write has written.
func (s *Service) spool(write func(io.Writer) error) (in io.ReadSeeker, end func(), err error) {
	f, err := spool.New()
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = f.Close() } // it was read, or is of no use
	if err := write(f); err != nil {
		end()
		return nil, nil, err
	}
	return f, end, nil
}
