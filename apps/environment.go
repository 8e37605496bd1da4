package apps

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
)

// The environment of an app is what its handlers get as env: names with secret values. The names are in the member env of the
// definition, each with entity.Mask; the values are encrypted beside it, bound to the row.

// Where the values are sealed.
const (
	sealedTable  = "tc_apps"
	sealedColumn = "env_sealed"
)

// The most that an environment may have.
const (
	maxVars  = 200
	maxValue = 64 << 10  // bytes of a value
	maxEnv   = 256 << 10 // bytes of all values
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// values returns the environment of an app.
func (s *Service) values(app App) (map[string]string, error) {
	env := map[string]string{}
	if app.Sealed == "" {
		return env, nil
	}
	plain, err := s.o.Keys.Open(app.Tenant, sealedTable, sealedColumn, app.ID, app.Sealed)
	if err != nil {
		return nil, err
	}
	return env, json.Unmarshal(plain, &env)
}

// seal sets the environment of an app.
func (s *Service) seal(app *App, env map[string]string) error {
	if len(env) == 0 {
		app.Sealed = ""
		return nil
	}
	plain, err := json.Marshal(env)
	if err != nil {
		return err
	}
	app.Sealed, err = s.o.Keys.Seal(app.Tenant, sealedTable, sealedColumn, app.ID, plain)
	return err
}

// define changes the definition of an app: see Edit.Defn. DefnUpdatedAt is the time when something is different then.
func (s *Service) define(app *App, change json.RawMessage) error {
	was, wasSealed := app.Defn, app.Sealed
	changed, err := members("defn", change)
	if err != nil {
		return err
	}
	env, given := changed["env"]
	delete(changed, "env")
	rest, err := compact(changed)
	if err != nil {
		return err
	}
	defn, err := merged("defn", app.Defn, rest)
	if err != nil {
		return err
	}
	app.Defn = defn
	if given {
		if err := s.setEnv(app, env); err != nil {
			return err
		}
	}
	if string(was) != string(app.Defn) || wasSealed != app.Sealed {
		now := s.stamp()
		app.DefnUpdatedAt = &now
	}
	return nil
}

// setEnv changes the environment: see Edit.Defn. null removes it.
func (s *Service) setEnv(app *App, change json.RawMessage) error {
	var vars map[string]*string
	if err := json.Unmarshal(change, &vars); err != nil {
		return errs.New(errs.Invalid, "defn.env must be an object of texts")
	}
	env, err := s.values(*app)
	if err != nil {
		return err
	}
	if string(change) == "null" {
		clear(env)
	}
	different := string(change) == "null"
	for name, value := range vars {
		old, there := env[name]
		switch {
		case value == nil:
			delete(env, name)
			different = different || there
		case *value == entity.Mask && there:
		case *value == entity.Mask:
			return errs.New(errs.Invalid, "defn.env.%s: %s stands for a value that is there already, and there is none", short(name), entity.Mask)
		default:
			env[name] = *value
			different = different || !there || old != *value
		}
	}
	if err := acceptEnv(env); err != nil {
		return err
	}
	if different {
		if err := s.seal(app, env); err != nil {
			return err
		}
	}
	return maskEnv(app, env)
}

// maskEnv puts the names of the environment into the definition.
func maskEnv(app *App, env map[string]string) error {
	all, err := members("defn", app.Defn)
	if err != nil {
		return err
	}
	delete(all, "env")
	if len(env) > 0 {
		masks := make(map[string]string, len(env))
		for name := range env {
			masks[name] = entity.Mask
		}
		if all["env"], err = json.Marshal(masks); err != nil {
			return err
		}
	}
	app.Defn, err = compact(all)
	return err
}

func acceptEnv(env map[string]string) error {
	if len(env) > maxVars {
		return errs.New(errs.Invalid, "defn.env must have at most %d variables", maxVars)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envName.MatchString(name) {
			return errs.New(errs.Invalid, "defn.env: %q must be 1 to 128 letters, digits and underscores and not begin with a digit", short(name))
		}
		if len(env[name]) > maxValue || !escapes.StorableWithin(env[name], maxValue) {
			return errs.New(errs.Invalid, "defn.env.%s must be UTF-8 without NUL and have at most %d bytes", name, maxValue)
		}
		total += len(env[name])
	}
	if total > maxEnv {
		return errs.New(errs.Invalid, "defn.env must have at most %d bytes in all", maxEnv)
	}
	return nil
}

func short(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
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

// reseal sets the environment of an app to that of another one.
func (s *Service) reseal(app *App, of App) error {
	env, err := s.values(of)
	if err != nil {
		return err
	}
	return s.seal(app, env)
}

// Environment returns the names of an app's variables, ordered; their values leave the service only to the app's handlers. It is for
// those who may change the app. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) Environment(ctx context.Context, id string) ([]string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	app, err := s.inside(ctx, a, id)
	if err != nil {
		return nil, err
	}
	env, err := s.values(app)
	return slices.Sorted(maps.Keys(env)), err
}

// SetVariable sets a variable of an app. It needs the permission write. Errors: errs.NotFound; errs.Forbidden; errs.Invalid.
func (s *Service) SetVariable(ctx context.Context, id, name, value string) (Shown, error) {
	return s.changeShown(ctx, id, toWrite, func(_ context.Context, _ caller, app *App) error {
		return s.defineVariable(app, name, &value)
	})
}

// RemoveVariable removes a variable of an app. It needs the permission write. Errors: errs.NotFound, also for one that is not there;
// errs.Forbidden.
func (s *Service) RemoveVariable(ctx context.Context, id, name string) error {
	return s.change(ctx, id, toWrite, func(_ context.Context, _ caller, app *App) error {
		env, err := s.values(*app)
		if err != nil {
			return err
		}
		if _, there := env[name]; !there {
			return errs.New(errs.NotFound, "Variable not found.")
		}
		return s.defineVariable(app, name, nil)
	})
}

// defineVariable sets a variable; nil removes it.
func (s *Service) defineVariable(app *App, name string, value *string) error {
	change, err := json.Marshal(map[string]map[string]*string{"env": {name: value}})
	if err != nil {
		return err
	}
	return s.define(app, change)
}
