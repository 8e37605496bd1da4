package domains_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/directory/local"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/store/domains"
	people "github.com/tenantcontent/tenantcontent/internal/store/principals"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// paper is a driver of a directory on paper: its people are what a test says, and their password is
// the configuration's.
type paper struct {
	mu     sync.Mutex
	all    []domains.Entry
	err    error         // of Entries, after all; and of Login
	wait   chan struct{} // Entries waits for it in the middle; nil: it does not
	delay  time.Duration // of each login
	tries  int           // logins that asked
	asked  string        // the name that the last one asked for
	domain string        // people have the names name@domain, too; "" for none

	long map[string]string // usernames, by another name of the person

	tested bool // realms are Testers
	stale  bool // the account of the configuration is refused
	paused int  // calls that did not ask, after that
}

func (*paper) Info() domains.Info {
	return domains.Info{
		ID: "paper", Name: "Paper", Group: "Directories",
		LoginComponent: "password", LoginMethod: "POST", UsernameParam: "username",
		PasswordParam: "password",
		ScanComponent: map[string]any{"scan": struct{}{}}, Secrets: []string{"password", "pin"},
		Members:  []string{"url", "password", "pin", "n", "map", "map.uid"},
		Defaults: map[string]string{"username": "uid"},
	}
}

func (p *paper) Open(config json.RawMessage) (domains.Realm, error) {
	var c struct{ URL, Password string }
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, errs.New(errs.Invalid, "url must be text")
	}
	if c.URL == "" {
		return nil, errs.New(errs.Invalid, "url is required")
	}
	d := &desk{paper: p, password: c.Password}
	if p.tested {
		return &tester{d}, nil
	}
	return d, nil
}

// tester is a desk that can be tried out.
type tester struct{ *desk }

func (d *tester) Test(ctx context.Context, _ domains.Endpoints, username string) []domains.Step {
	_, err := d.Find(ctx, username)
	return []domains.Step{{Name: "bind", OK: err == nil, Message: errs.MessageOf(err)}}
}

// desk is paper's realm.
type desk struct {
	*paper
	password string
	refused  error
}

func (d *desk) Check() error { return nil }

func (d *desk) Paused() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

func (d *desk) Login(_ context.Context, username, password string) (domains.Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	d.asked = username
	time.Sleep(d.delay)
	if d.err != nil {
		return domains.Identity{}, d.err
	}
	for _, e := range d.all {
		if e.Person != nil && e.Person.Username == username && password == d.password {
			return *e.Person, nil
		}
	}
	return domains.Identity{}, errs.New(errs.Unauthenticated, "nobody of this name, or a wrong password")
}

func (d *desk) Account(name string) string {
	short, domain, long := strings.Cut(name, "@")
	if long && domain != d.domain {
		return ""
	}
	return short
}

func (d *desk) Find(ctx context.Context, username string) (domains.Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wait != nil {
		<-ctx.Done()
		return domains.Identity{}, ctx.Err()
	}
	if d.err != nil {
		return domains.Identity{}, d.err
	}
	if d.refused != nil {
		d.paper.paused++
		return domains.Identity{}, d.refused
	}
	if d.stale {
		d.refused = errs.New(errs.Upstream, "The directory refuses the account.")
		return domains.Identity{}, d.refused
	}
	var found []domains.Identity
	for _, e := range d.all {
		if e.Person != nil && (strings.EqualFold(e.Person.Username, d.Account(username)) ||
			d.long[username] == e.Person.Username) {
			found = append(found, *e.Person)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return domains.Identity{}, errs.New(errs.NotFound, "no line, or more than one, has this name.")
}

func (d *desk) Entries(ctx context.Context) iter.Seq2[domains.Entry, error] {
	return func(yield func(domains.Entry, error) bool) {
		for i, e := range d.all {
			if i == 100 && d.wait != nil {
				select {
				case <-d.wait:
				case <-ctx.Done():
					yield(domains.Entry{}, ctx.Err())
					return
				}
			}
			if !yield(e, nil) {
				return
			}
		}
		if d.err != nil {
			yield(domains.Entry{}, d.err)
		}
	}
}

func person(n int) domains.Entry {
	return domains.Entry{Person: &domains.Identity{
		ID: fmt.Sprintf("id-%04d", n), Username: fmt.Sprintf("user%04d", n), DisplayName: fmt.Sprintf("User %d", n),
	}}
}

// gate is a driver of a provider that lets everybody in who brings its memory back.
type gate struct{ *provider }

// provider is what gate logs in at.
type provider struct {
	mu       sync.Mutex
	says     func(*domains.SignedIn) // of everybody who logs in; may be nil
	away     error                   // of Discover
	hangs    bool                    // Discover does, until its context ends
	meantime func()                  // while Discover asks; may be nil
	asked    int                     // by Discover
}

func (gate) Info() domains.Info {
	return domains.Info{
		ID: "gate", Name: "Gate", LoginMethod: "GET",
		LoginComponent: "redirect", Secrets: []string{"key"}, Members: []string{"url", "key"},
	}
}

func (g gate) Open(json.RawMessage) (domains.Realm, error) { return g, nil }

func (gate) Check() error { return nil }

func (gate) Test(context.Context, domains.Endpoints, string) []domains.Step {
	return []domains.Step{{Name: "discovery", OK: true, Message: "The provider answers."}}
}

func (gate) Redirects(domains.Realm) string { return "" }

func (g gate) Discover(ctx context.Context) error {
	g.mu.Lock()
	g.asked++
	away, hangs, meantime := g.away, g.hangs, g.meantime
	g.mu.Unlock()
	if meantime != nil {
		meantime()
	}
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return away
}

func (gate) Begin(_ context.Context, at domains.Endpoints, state string) (string, []byte, error) {
	return "https://provider.example/?" + url.Values{
		"state": {state},
		"back":  {at.Callback},
	}.Encode(), []byte("memory of " + state), nil
}

func (g gate) Finish(
	_ context.Context, _ domains.Endpoints, memory []byte, a domains.Answer,
) (domains.SignedIn, error) {
	if string(memory) != "memory of "+a.State || a.Params.Get("code") == "" {
		return domains.SignedIn{}, errs.New(errs.Unauthenticated, "not the one")
	}
	who := domains.SignedIn{
		Identity: domains.Identity{ID: a.Params.Get("code"), Username: "gate-" + a.Params.Get("code")},
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.says != nil {
		g.says(&who)
	}
	return who, nil
}

func (gate) BeginLogout(_ context.Context, _ domains.Endpoints, _ []byte, state string) (string, []byte, error) {
	return "https://provider.example/out?state=" + state, []byte("memory of " + state), nil
}

func (gate) FinishLogout(_ context.Context, _ domains.Endpoints, memory []byte, a domains.Answer) error {
	if string(memory) != "memory of "+a.State {
		return errs.New(errs.Unauthenticated, "not the one")
	}
	return nil
}

// world is the services over one database.
type world struct {
	*domains.Service
	db     *bun.DB
	store  *bunstore.Store
	people *principals.Service
	paper  *paper
	gate   *provider
	queue  *queue.Service
	clock  time.Time
	late   atomic.Int64 // nanoseconds, for tests that go on meanwhile

	with func(t *testing.T, change func(*options)) *domains.Service // another service over the same database
}

type settings struct{}

func (settings) DefaultDomain(context.Context, string) (string, error) { return "ldap", nil }

func (settings) ForgetDomain(context.Context, string, string) error { return nil }

// options are what the services of a world are made of.
type options struct {
	domains.Options
	domains.LookupOptions
}

func newWorld(t *testing.T, open dbtest.Opener) *world {
	t.Helper()
	w := &world{db: open(t), clock: time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC)}
	w.build(t, func() time.Time { return w.clock.Add(time.Duration(w.late.Load())) })
	w.addSuperusers(t)
	return w
}

// build makes the services over w.db.
func (w *world) build(t *testing.T, now func() time.Time) {
	t.Helper()
	is := is.New(t)
	keys, err := keyring.Parse(keyring.Generate())
	is.NoErr(err)
	w.paper, w.gate = &paper{}, &provider{}
	w.store = bunstore.New(w.db)
	users := people.New(w.db)
	w.queue = queue.New(queue.Options{Store: queuestore.New(w.db), Now: now})
	w.people = principals.New(principals.Options{
		Store: users,
		Now:   now,
		Cost:  principals.Cost{Memory: 8, Time: 1, Threads: 1},
	})
	w.with = func(t *testing.T, change func(*options)) *domains.Service {
		t.Helper()
		o := options{domains.Options{
			Principals: w.people.Unchecked(), Tenants: settings{}, Now: now, Queue: w.queue,
			Directories: dirsync.New(dirsync.Options{Store: users, Principals: w.people.Unchecked(), Now: now}),
		}, domains.LookupOptions{
			Store: w.store, Keys: keys,
			Drivers: []domains.Driver{local.Driver{}, ldap.LDAP{}, w.paper, gate{w.gate}},
		}}
		change(&o)
		o.Lookup, err = domains.NewLookup(o.LookupOptions)
		is.NoErr(err)
		return domains.New(o.Options)
	}
	w.Service = w.with(t, func(*options) {})
}

// addSuperusers adds a superuser to each tenant.
func (w *world) addSuperusers(t *testing.T) {
	t.Helper()
	for _, tenant := range []string{"acme", "evil"} {
		_, err := w.people.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: tenant, Username: "root", Password: "correct horse",
		})
		is.New(t).NoErr(err)
	}
}

func as(t testing.TB, tenant, user string, super bool) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: tenant, User: user, Superuser: super})
}

// root is acme's superuser.
func root(t testing.TB) context.Context { return as(t, "acme", "root", true) }

// add makes a domain in acme.
func (w *world) add(t testing.TB, name, driver, config string) domains.Domain {
	t.Helper()
	return w.addTo(t, "acme", name, driver, config)
}

func (w *world) addTo(t testing.TB, tenant, name, driver, config string) domains.Domain {
	t.Helper()
	d, err := w.Create(
		as(t, tenant, "root", true), domains.Domain{Name: &name, Type: driver, Config: json.RawMessage(config)},
	)
	is.New(t).NoErr(err)
	return d
}

func (w *world) user(t testing.TB, name string) principals.User {
	t.Helper()
	u, err := w.people.User(root(t), name)
	is.New(t).NoErr(err)
	return u
}
