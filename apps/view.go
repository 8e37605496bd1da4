package apps

import (
	"context"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// Viewed is an app as its pages are shown to somebody.
type Viewed struct {
	App          // without Description, Defn, Settings and Sealed
	Manifest     Manifest
	Entry        string   // path of the page that opens with the app
	PassDatasets bool     // the settings pass the app's datasets to its pages
	Roles        []string // ids of the roles of the manifest that the viewer has, in the manifest's order
	Switch       bool     // the viewer may view the app as another role
}

// View returns an app, or a draft, as its pages are shown to the caller. The caller must be allowed
// to run it. With a role, which the caller has or may switch to, that is the only one. The entry
// page is the member entryPoint of the definition, else that of the manifest, else index.html.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a role that the manifest does not have;
// errs.Conflict for a manifest that cannot be read.
func (s *Service) View(ctx context.Context, id, role string) (Viewed, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Viewed{}, err
	}
	o, err := s.run(ctx, a, id)
	if err != nil {
		return Viewed{}, err
	}
	v, err := s.viewed(ctx, a, o)
	if err != nil || role == "" {
		return v, err
	}
	if !v.Manifest.HasRole(role) {
		return Viewed{}, errs.New(errs.Invalid, "role must be the id of a role of the app's manifest")
	}
	if !v.Switch && !slices.Contains(v.Roles, role) {
		return Viewed{}, errs.New(errs.Forbidden, "Viewing an app as another role needs the right to change the app.")
	}
	v.Roles = []string{role}
	return v, nil
}

// ViewOfVisitor returns an app as its pages are shown to visitors whom the caller has invited, with
// those of the given roles that its manifest has. The caller must be allowed to share it. Errors:
// errs.NotFound; errs.Forbidden; errs.Invalid for a draft; errs.Conflict for a manifest that cannot
// be read.
func (s *Service) ViewOfVisitor(ctx context.Context, id string, roles []string) (Viewed, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Viewed{}, err
	}
	o, err := s.sharable(ctx, a, id)
	if err != nil {
		return Viewed{}, err
	}
	return s.shown(ctx, o, roles)
}

// Declared returns what an app that the caller sees declares in its manifest, with the caller's
// roles. Errors: errs.NotFound; errs.Conflict for a manifest that cannot be read.
func (s *Service) Declared(ctx context.Context, id string) (Viewed, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Viewed{}, err
	}
	app, grant, err := s.rules.Find(ctx, a, id)
	if err != nil {
		return Viewed{}, err
	}
	return s.viewed(ctx, a, newOpened(app, grant))
}

// ViewFile returns a file of an app that its pages may load, with its bytes, which the caller
// closes. The caller must be allowed to run the app. Pages may load all files except the manifest,
// those that run on the server (in the folders server, webhooks, migrations and tools), and files
// and folders whose names begin with a dot. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) ViewFile(ctx context.Context, id, path string) (File, io.ReadSeekCloser, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, nil, err
	}
	o, err := s.run(ctx, a, id)
	if err != nil {
		return File{}, nil, err
	}
	if private(path) {
		return File{}, nil, errs.New(errs.NotFound, "File not found.")
	}
	return s.files.OpenCached(ctx, a.Tenant, o.app.LibraryID, path)
}

// opened is an app as its pages need it, with the grant of somebody who sees it. Requests share it:
// neither it nor what it points to may be changed.
type opened struct {
	app          App // without what may be long: Description, Defn, Settings and Sealed
	grant        Grant
	entryPoint   string // of the definition, "" for none
	passDatasets bool   // of the settings
}

func newOpened(app App, grant Grant) *opened {
	var defn struct {
		EntryPoint any `json:"entryPoint"`
	}
	var settings struct {
		PassDatasets any `json:"passDatasets"`
	}
	_ = json.Unmarshal(app.Defn, &defn) // both are objects
	_ = json.Unmarshal(app.Settings, &settings)
	app.Description, app.Defn, app.Settings, app.Sealed, app.WebhookSecret = nil, nil, nil, "", ""
	entryPoint, _ := defn.EntryPoint.(string)
	return &opened{
		app: app, grant: grant,
		entryPoint:   strings.Clone(entryPoint[:min(len(entryPoint), 2000)]), // no file has a longer path
		passDatasets: settings.PassDatasets == true,
	}
}

// run returns an app that an actor may run, also with a token that can only read.
func (s *Service) run(ctx context.Context, a actor.Actor, id string) (*opened, error) {
	o, err := s.open(ctx, a, id)
	if err != nil {
		return nil, err
	}
	a.ReadOnly = false
	return o, toRun.check(a, o.app, o.grant)
}

// open is find for the requests of pages, which load many files at once: the app and the grant, not
// what the actor may do with them, may be those of a second ago if another process has changed them
// since.
func (s *Service) open(ctx context.Context, a actor.Actor, id string) (*opened, error) {
	viewer := id + "\x00" + strings.Join(shares.Principals(a), "\x00")
	o, err := s.opened.Get(ctx, a.Tenant, viewer, func() (*opened, error) {
		app, grant, err := s.rules.Find(ctx, a, id)
		return newOpened(app, grant), err
	})
	if err != nil {
		return nil, err
	}
	if !s.rules.Sees(a, &o.app, o.grant) {
		return nil, s.rules.NotFound()
	}
	return o, nil
}

// Loadable reports whether pages of an app may load a file with a path: see ViewFile.
func Loadable(path string) bool { return !private(path) }

// private reports whether no page may load a file.
func private(path string) bool {
	segments := strings.Split(path, "/")
	switch strings.ToLower(segments[0]) {
	case "server", "webhooks", "migrations", "tools":
		return true
	}
	return slices.ContainsFunc(manifest.Files(), func(name string) bool { return strings.EqualFold(name, path) }) ||
		slices.ContainsFunc(segments, func(s string) bool { return strings.HasPrefix(s, ".") })
}

// viewed returns an app with its manifest, as an actor has it.
func (s *Service) viewed(ctx context.Context, a actor.Actor, o *opened) (Viewed, error) {
	v, err := s.shown(ctx, o, o.grant.Roles)
	if hasAllRoles(a, o.app) {
		v.Roles = allOf(v.Manifest)
	}
	a.ReadOnly = false
	v.Switch = PermissionsOf(a, o.app, o.grant).SwitchRoles
	return v, err
}

// shown returns an app with its manifest, as somebody with some roles has it.
func (s *Service) shown(ctx context.Context, o *opened, roles []string) (Viewed, error) {
	m, err := s.manifest(ctx, o.app)
	return Viewed{
		App:          o.app,
		Manifest:     m,
		Entry:        entry(o.entryPoint, m.EntryPoint),
		PassDatasets: o.passDatasets,
		Roles:        ofManifest(m, roles),
	}, err
}

// hasAllRoles reports whether an actor has every role of an app's manifest without a share: its
// owner, those who are Publisher or more in the owning team, and superusers.
func hasAllRoles(a actor.Actor, app App) bool {
	return a.Superuser || a.User == app.OwnerID || a.Teams[app.OwnerID] >= actor.Publisher
}

// ofManifest returns the ids of the roles of a manifest that are among some, in the manifest's
// order.
func ofManifest(m manifest.Manifest, some []string) (roles []string) {
	for _, r := range m.Roles {
		if slices.Contains(some, r.ID) {
			roles = append(roles, r.ID)
		}
	}
	return roles
}

// allOf returns the ids of the roles of a manifest, in its order.
func allOf(m manifest.Manifest) (roles []string) {
	for _, r := range m.Roles {
		roles = append(roles, r.ID)
	}
	return roles
}

// entry returns the path of the page that opens with an app: the first one that is given, else
// index.html.
func entry(given ...string) string {
	for _, text := range given {
		if text != "" {
			return path.Clean(strings.TrimLeft(text, "/"))
		}
	}
	return "index.html"
}
