// Package colors manages the palette of a tenant: named colors that every session may read and
// designers may write.
//
//	red, err := app.Colors.Put(ctx, "red", "#ff0000")
//	for color, err := range app.Colors.All(ctx) {
//		…
//	}
//	err = app.Colors.Delete(ctx, "red")
//
// httpapi, the root and hosts import it; internal/store/colors stores its rows.
package colors

import (
	"context"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Color is one entry of a tenant's palette.
type Color struct {
	Tenant    string
	Key       string    // 1 to 255 characters without control characters; unique in the tenant, case kept
	Color     string    // "#aabbcc" or "#abc"; a palette color such as "blue:500" when it was imported
	Source    *string   // tag of where it came from; nil for none
	CreatedAt time.Time // UTC, whole microseconds
	UpdatedAt time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (c Color) Version() string {
	return guard.Version(c.Key, c.Color, c.Source, c.CreatedAt, c.UpdatedAt)
}

// Permissions is what the caller may do with a color.
type Permissions struct {
	Edit, Delete, Write bool
}

// Store keeps colors. The tests beside its bun-backed store say what every implementation must do.
type Store interface {
	// Get fails with errs.NotFound when the tenant has no color with this key.
	Get(ctx context.Context, tenant, key string) (Color, error)
	// Page returns a page in the order of q.Sort: key (the default), createdAt or updatedAt.
	Page(ctx context.Context, tenant string, q paging.Query) (paging.Page[Color], error)
	// All returns the tenant's colors ordered by key, only those with this source when it is not
	// "". It holds no connection while the caller works on a color, so the caller may take its time
	// and write meanwhile.
	All(ctx context.Context, tenant, source string) iter.Seq2[Color, error]
	// Put adds a color or, when the key is taken, sets its Color and UpdatedAt alone. It returns
	// the stored color.
	Put(ctx context.Context, tenant string, c Color) (Color, error)
	// Swap is Put that also returns the color before, nil if the key was new. If another
	// transaction changed the color meanwhile, was may be the color before that change.
	Swap(ctx context.Context, tenant string, c Color) (now Color, was *Color, err error)
	// PutAll is like Put for many colors of different keys, and sets Source too where it is not
	// nil.
	PutAll(ctx context.Context, tenant string, all []Color) error
	// Delete removes a color. A key that does not exist is no error.
	Delete(ctx context.Context, tenant, key string) error
	TransferStore
	// Lock locks a tenant until the transaction in ctx ends: other callers of Lock wait. It fails
	// with errs.NotFound if there is no such tenant.
	Lock(ctx context.Context, tenant string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// Count returns how many colors a tenant has.
	Count(ctx context.Context, tenant string) (int, error)
}

// Service implements the rules for colors over a Store.
type Service struct {
	store     Store
	feed      *entity.Changes
	clock     clock.Clock
	importing *limiter.Limiter // by tenant
}

// Options configure a Service. Store is required.
type Options struct {
	Store Store
	Feed  *entity.Changes  // nil: changes are not announced
	Now   func() time.Time // default time.Now
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{
		store:     o.Store,
		feed:      o.Feed,
		clock:     clock.New(o.Now, nil),
		importing: limiter.New(limiter.Options{Capacity: maxImports, PerKey: 1, Timeout: maxWait}),
	}
}

// Get returns one color to any session. Errors: errs.NotFound.
func (s *Service) Get(ctx context.Context, key string) (Color, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Color{}, err
	}
	return s.store.Get(ctx, a.Tenant, key)
}

// List returns a page of the palette to any session. Errors: errs.Invalid for a sort or cursor that
// does not fit.
func (s *Service) List(ctx context.Context, q paging.Query) (paging.Page[Color], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Color]{}, err
	}
	return s.store.Page(ctx, a.Tenant, q)
}

// All returns the whole palette to any session, ordered by key. A palette that changes meanwhile
// may be returned partly as it was and partly as it is.
func (s *Service) All(ctx context.Context) iter.Seq2[Color, error] {
	a, err := actor.From(ctx)
	if err != nil {
		return failed(err)
	}
	return s.store.All(ctx, a.Tenant, "")
}

func failed(err error) iter.Seq2[Color, error] {
	return func(yield func(Color, error) bool) { yield(Color{}, err) }
}

// Put sets a color, and creates it if the key is new; its source does not change. It needs the role
// Designer.
// Errors: errs.Forbidden; errs.Invalid for a bad key, or for a color that is no hex ("Invalid color
// format").
func (s *Service) Put(ctx context.Context, key, color string) (Color, error) {
	of := entity.Subject{Kind: Kind, ID: key, Action: entity.ActionUpdate, TellsBefore: true}
	if s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (Color, error) {
			return s.Put(ctx, key, color)
		})
	}
	a, err := actor.Allowed(ctx, actor.ColorWrite)
	if err != nil {
		return Color{}, err
	}
	if err := validKey(key); err != nil {
		return Color{}, err
	}
	if !ValidHex(color) {
		return Color{}, errs.New(errs.Invalid, "Invalid color format")
	}
	now := s.clock.Stamp()
	set := Color{Tenant: a.Tenant, Key: key, Color: color, CreatedAt: now, UpdatedAt: now}
	if s.feed == nil {
		return s.store.Put(ctx, a.Tenant, set)
	}
	c, was, err := s.store.Swap(ctx, a.Tenant, set)
	if was != nil {
		s.feed.Was(ctx, *was)
	}
	return c, err
}

// Delete removes a color; one that does not exist is no error. It needs the role Designer. Errors:
// errs.Forbidden.
func (s *Service) Delete(ctx context.Context, key string) error {
	if of := (entity.Subject{Kind: Kind, ID: key, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, key) })
	}
	a, err := actor.Allowed(ctx, actor.ColorWrite)
	if err != nil {
		return err
	}
	return s.store.Delete(ctx, a.Tenant, key)
}

// Permissions returns what the caller may do with a color. Errors: errs.NotFound.
func (s *Service) Permissions(ctx context.Context, key string) (Permissions, error) {
	if _, err := s.Get(ctx, key); err != nil {
		return Permissions{}, err
	}
	a, err := actor.From(ctx)
	may := a.Can(actor.ColorWrite)
	return Permissions{Edit: may, Delete: may, Write: may}, err
}

// validKey returns errs.Invalid for a key that is empty, longer than 255 characters, not UTF-8 or
// has control characters.
func validKey(key string) error {
	switch {
	case key == "":
		return errs.New(errs.Invalid, "key must not be empty")
	case !utf8.ValidString(key):
		return errs.New(errs.Invalid, "key must be UTF-8")
	case utf8.RuneCountInString(key) > 255:
		return errs.New(errs.Invalid, "key must have at most 255 characters")
	case strings.ContainsFunc(key, unicode.IsControl):
		return errs.New(errs.Invalid, "key must not have control characters")
	}
	return nil
}
