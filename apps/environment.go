package apps

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
)

// The environment of an app is what its handlers get as env: names with secret values. The names
// are in the member env of the definition, each with entity.Mask; the values are encrypted beside
// it, bound to the row.

// Where the values are sealed.
const (
	sealedTable  = "tc_apps"
	sealedColumn = "env_sealed"
)

// values returns the environment of an app.
func (s *Service) values(app App) (map[string]string, error) { return s.env.Open(app.fields()) }

// define changes the definition of an app: see Edit.Defn.
func (s *Service) define(app *App, change json.RawMessage) error {
	changed, err := members("defn", change)
	if err != nil {
		return err
	}
	env, given := changed["env"]
	delete(changed, "env")
	return s.redefine(app, func(defn map[string]json.RawMessage) error {
		if err := acceptEntryPoint(defn["entryPoint"], changed["entryPoint"]); err != nil {
			return err
		}
		merge(defn, changed)
		if !given {
			return nil
		}
		var vars map[string]*string
		if err := json.Unmarshal(env, &vars); err != nil {
			return errs.New(errs.Invalid, "defn.env must be an object of texts")
		}
		if vars == nil { // null
			delete(defn, "env")
			app.Sealed = ""
		}
		return s.setEnv(app, defn, vars)
	})
}

// acceptEntryPoint refuses a new member entryPoint of a definition that is not the path of a file.
// null removes it; one that was stored before paths were checked can be sent back.
func acceptEntryPoint(was, is json.RawMessage) error {
	if is == nil || string(is) == "null" || string(is) == string(was) {
		return nil
	}
	var p string
	if json.Unmarshal(is, &p) != nil {
		return errs.New(errs.Invalid, "defn.entryPoint must be the path of a file, such as index.html, or null")
	}
	if err := libraries.ValidPath(p); err != nil {
		return errs.New(errs.Invalid, "defn.entryPoint: %s", errs.MessageOf(err))
	}
	return nil
}

// redefine changes the definition of an app; edit gets its members. DefnUpdatedAt is the time when
// something is different then.
func (s *Service) redefine(app *App, edit func(defn map[string]json.RawMessage) error) error {
	was, wasSealed := app.Defn, app.Sealed
	defn, err := members("defn", app.Defn)
	if err != nil {
		return err
	}
	if err := edit(defn); err != nil {
		return err
	}
	if app.Defn, err = compact(defn); err != nil {
		return err
	}
	if string(was) != string(app.Defn) || wasSealed != app.Sealed {
		now := s.rules.Stamp()
		app.DefnUpdatedAt = &now
	}
	return nil
}

// setEnv changes variables of an app, and their names in the members of its definition; nil removes
// one, and entity.Mask keeps its value.
func (s *Service) setEnv(app *App, defn map[string]json.RawMessage, vars map[string]*string) error {
	env, err := s.env.Change(app.fields(), vars)
	if err != nil {
		return err
	}
	return setMasks(defn, env)
}

// maskEnv puts the names of the environment into the definition.
func maskEnv(app *App, env map[string]string) error {
	defn, err := members("defn", app.Defn)
	if err != nil {
		return err
	}
	if err := setMasks(defn, env); err != nil {
		return err
	}
	app.Defn, err = compact(defn)
	return err
}

// setMasks sets the member env of a definition.
func setMasks(defn map[string]json.RawMessage, env map[string]string) (err error) {
	delete(defn, "env")
	if len(env) == 0 {
		return nil
	}
	masks := make(map[string]string, len(env))
	for name := range env {
		masks[name] = entity.Mask
	}
	defn["env"], err = json.Marshal(masks)
	return err
}

// onlyEnv reports whether a change of a definition has no member but env.
func onlyEnv(change json.RawMessage) bool {
	all, err := members("defn", change)
	_, given := all["env"]
	return err == nil && (len(all) == 0 || len(all) == 1 && given)
}

// withoutEnv returns a definition without its environment.
func withoutEnv(defn json.RawMessage) (json.RawMessage, error) {
	return merged("defn", defn, json.RawMessage(`{"env":null}`))
}

// Variable is a variable of an app.
type Variable struct {
	Name     string
	HasValue bool
	Required bool // the manifest requires it
}

// Variables returns the variables of an app, ordered by name: those that have values, and those
// that the manifest in its files or that of its last deploy declares. The values leave the service
// only to the app's handlers. The caller must be allowed to change the app. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) Variables(ctx context.Context, id string) ([]Variable, error) {
	app, err := s.rules.Inside(ctx, id)
	if err != nil {
		return nil, err
	}
	all := map[string]Variable{}
	for _, read := range []func() (manifest.Manifest, error){
		func() (manifest.Manifest, error) { return s.manifest(ctx, app) },
		func() (manifest.Manifest, error) { return s.nextManifest(ctx, app.Tenant, app.LibraryID) },
	} {
		m, err := read()
		if err != nil && errs.CodeOf(err) != errs.Conflict { // one that cannot be read declares nothing
			return nil, err
		}
		for _, v := range m.Env {
			all[v.Name] = Variable{Name: v.Name, Required: v.Required}
		}
	}
	names, err := s.env.Names(app.fields())
	for _, name := range names {
		v := all[name]
		v.Name, v.HasValue = name, true
		all[name] = v
	}
	return slices.SortedFunc(maps.Values(all), func(a, b Variable) int { return strings.Compare(a.Name, b.Name) }), err
}

// unset returns warnings about variables that a manifest requires and that have no value in an app
// or draft. id is the app's.
func (s *Service) unset(app App, id string, m manifest.Manifest) (warnings []string, err error) {
	names, err := s.env.Names(app.fields())
	for _, v := range m.Env {
		if v.Required && !slices.Contains(names, v.Name) {
			warnings = append(
				warnings,
				"The manifest requires the variable "+v.Name+", which has no value: set it with PUT /api/apps/"+id+
					"/environment/"+v.Name+".",
			)
		}
	}
	return warnings, err
}

// PutVariable sets a variable of an app. It needs the permission write. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid.
func (s *Service) PutVariable(ctx context.Context, id, name, value string) (Shown, error) {
	return s.changeShown(ctx, id, toWrite, func(_ context.Context, _ drafts.Caller, app *App) error {
		return s.redefine(app, func(defn map[string]json.RawMessage) error {
			return s.setEnv(app, defn, map[string]*string{name: &value})
		})
	})
}

// DeleteVariable removes a variable of an app. It needs the permission write. Errors:
// errs.NotFound, also for one that is not there; errs.Forbidden.
func (s *Service) DeleteVariable(ctx context.Context, id, name string) error {
	return s.change(ctx, id, toWrite, func(_ context.Context, _ drafts.Caller, app *App) error {
		return s.redefine(app, func(defn map[string]json.RawMessage) error {
			names, err := members("defn.env", defn["env"])
			if err != nil {
				return err
			}
			if _, there := names[name]; !there {
				return errs.New(errs.NotFound, "Variable not found.")
			}
			return s.setEnv(app, defn, map[string]*string{name: nil})
		})
	})
}
