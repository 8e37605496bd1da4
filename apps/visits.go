package apps

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
)

const (
	recent    = 20 // how many apps Recent returns at most
	statsDays = 30 // how many days Stats covers
)

// dayLayout is how a Day is written.
const dayLayout = time.DateOnly

// View is who viewed an app on which day.
type View struct {
	App, Username string
	Day           string // in UTC, such as 2026-11-20
}

// Views is how often, and when last.
type Views struct {
	N    int64
	Last time.Time
}

func (v Views) plus(more Views) Views {
	v.N += more.N
	if more.Last.After(v.Last) {
		v.Last = more.Last
	}
	return v
}

// Day is how often an app was viewed on a day.
type Day struct {
	Day   string // in UTC, such as 2026-11-20
	Views int64
	Users int // who viewed it
}

// Uses is what users have of apps.
type Uses struct {
	Favorites int // marks
	Visits    int // pairs of a user and an app viewed
	Views     int
}

// SetFavorite adds an app to the favorites of the caller, or removes it. For a draft it is the app.
// The caller must be allowed to see the app. Errors: errs.NotFound; errs.Forbidden for a caller
// that is not a user of the tenant.
func (s *Service) SetFavorite(ctx context.Context, id string, favorite bool) (v Shown, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Shown{}, err
	}
	if a.ReadOnly {
		return Shown{}, a.OnlyReads()
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		app, grant, err := s.rules.Find(ctx, a, id)
		if err != nil {
			return err
		}
		if err := s.store.SetFavorite(ctx, a.Tenant, a.User, app.ID, favorite, s.rules.Stamp()); err != nil {
			return err
		}
		action := entity.ActionCreate
		if !favorite {
			action = entity.ActionDelete
		}
		key := entity.Key{Kind: KindFavorite, ID: s.o.Feed.Part(app.ID, a.User)}
		if err := s.o.Feed.Each(ctx, a.Tenant, action, key); err != nil {
			return err
		}
		v, err = s.presenter.One(ctx, a, app, grant)
		return err
	})
	return v, err
}

// Recent returns the apps that the caller visited last and still sees, 20 at most, newest visit
// first, without Defn.
func (s *Service) Recent(ctx context.Context) ([]Shown, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	s.flushViews(ctx, a.Tenant)
	all, err := s.store.Recent(ctx, a.Tenant, a.User, drafts.ViewerOf(a), recent)
	if err != nil {
		return nil, err
	}
	return s.presenter.All(ctx, a, all)
}

// flushTimeout is how long a read waits for views to be written.
const flushTimeout = time.Second

// flushViews writes the counted views of a tenant for a read. Views that cannot be written now stay
// counted, and the read does not include them.
func (s *Service) flushViews(ctx context.Context, tenant string) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	_ = s.views.Flush(ctx, tenant)
}

// Visit records a view of an app by the caller: it becomes the first of Recent, and the view is
// counted. For a draft it does nothing. Errors: errs.NotFound.
func (s *Service) Visit(ctx context.Context, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	app, _, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return err
	}
	return s.CountView(ctx, app)
}

// CountView is Visit of an app that the caller has got from this Service. It writes nothing: views
// are counted in memory, and Unchecked.FlushAll writes them.
func (s *Service) CountView(ctx context.Context, app App) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	if app.EditingID == nil && app.Tenant == a.Tenant {
		now := s.rules.Stamp()
		s.views.Add(a.Tenant, View{App: app.ID, Username: a.User, Day: now.Format(dayLayout)}, Views{N: 1, Last: now})
	}
	return nil
}

// Stats returns how often an app was viewed on each of the last 30 days, today among them, without
// days of no views, to those who see its insides. A draft has the views of its app. Users who are
// deleted take their views with them. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Stats(ctx context.Context, id string) ([]Day, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	app, err := s.rules.Inside(ctx, id)
	if err != nil {
		return nil, err
	}
	s.flushViews(ctx, a.Tenant)
	since := s.rules.Stamp().AddDate(0, 0, 1-statsDays).Format(dayLayout)
	return s.store.Days(ctx, a.Tenant, s.rules.Original(app), since)
}
