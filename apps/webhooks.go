package apps

import (
	"context"
	"crypto/rand"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
)

// webhookColumn is where the secret of an app's webhooks is sealed.
const webhookColumn = "webhook_secret"

// secretBytes is the size of the secret.
const secretBytes = 32

// CheckWrite returns the id of an app that the caller may change, not with a token that can only
// read. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) CheckWrite(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	app, err := s.published(ctx, a, id)
	return app.ID, err
}

// CheckInspect is CheckWrite also for a token that can only read.
func (s *Service) CheckInspect(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	a.ReadOnly = false
	app, err := s.published(ctx, a, id)
	return app.ID, err
}

// CheckRecords is CheckInspect also for a draft: records of what handlers have done, such as logs
// and e-mails, are for those who may change what runs. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) CheckRecords(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	app, grant, err := s.rules.FindHead(ctx, a, id)
	if err != nil {
		return "", err
	}
	a.ReadOnly = false
	return app.ID, toWrite.check(a, app, grant)
}

// published returns an app, without Defn, that an actor may change and that is no draft.
func (s *Service) published(ctx context.Context, a actor.Actor, id string) (App, error) {
	app, grant, err := s.rules.FindHead(ctx, a, id)
	switch {
	case err != nil:
		return App{}, err
	case app.EditingID != nil:
		return App{}, s.noWebhooks()
	}
	return app, toWrite.check(a, app, grant)
}

func (s *Service) noWebhooks() error {
	return s.rules.IsDraft("webhooks and agents are those of the app itself")
}

// Writing calls do with the id of an app that the caller may change, in a transaction in which
// nobody else changes or removes the app.
// Errors: those of do; errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) Writing(ctx context.Context, id string, do func(ctx context.Context, id string) error) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		if _, err := s.store.Hold(ctx, a.Tenant, []string{a.User}); err != nil {
			return err
		}
		app, grant, err := s.rules.LockNamed(ctx, a, id)
		if err != nil {
			return err
		}
		if app.EditingID != nil {
			return s.noWebhooks()
		}
		if err := toWrite.check(a, app, grant); err != nil {
			return err
		}
		return do(ctx, app.ID)
	})
}

// WebhookSecret returns the secret that signs the tokens of an app's webhooks, and creates it if
// the app has no secret. The caller must be allowed to change the app. Errors: errs.NotFound;
// errs.Forbidden; errs.Invalid for a draft.
func (s *Service) WebhookSecret(ctx context.Context, id string) (secret []byte, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	app, err := s.published(ctx, a, id)
	if err != nil {
		return nil, err
	}
	if app.WebhookSecret != "" {
		return s.webhookSecret(app)
	}
	err = s.change(ctx, id, toWrite, func(_ context.Context, _ drafts.Caller, app *App) (err error) {
		if app.WebhookSecret == "" { // still
			err = s.renewSecret(app)
		}
		if err == nil {
			secret, err = s.webhookSecret(*app)
		}
		return err
	})
	return secret, err
}

// RotateWebhookSecret replaces the secret of an app's webhooks: every key that was signed with the
// old one is worth nothing from then on. It needs the permission write, and returns the id of the
// app. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) RotateWebhookSecret(ctx context.Context, id string) (string, error) {
	app, _, err := s.rules.Change(ctx, id, toWrite.check, func(_ context.Context, _ drafts.Caller, app *App) error {
		if app.EditingID != nil {
			return s.noWebhooks()
		}
		return s.renewSecret(app)
	})
	return app.ID, err
}

func (s *Service) renewSecret(app *App) (err error) {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never returns an error
	app.WebhookSecret, err = s.o.Keys.Seal(app.Tenant, sealedTable, webhookColumn, app.ID, secret)
	return err
}

func (s *Service) webhookSecret(app App) ([]byte, error) {
	return s.o.Keys.Open(app.Tenant, sealedTable, webhookColumn, app.ID, app.WebhookSecret)
}

// Hooked is an app whose webhooks are called.
type Hooked struct {
	App    string // id
	Owner  string // principal id; "" while it runs as nobody: see App.RunsAs
	Secret []byte // that signs the tokens
	Env    map[string]string
}

// Hooked returns an app by id or natural id. It runs one statement, and none for a text that cannot
// be an id. It returns errs.NotFound if the app does not exist, is deleted, is a draft, or has
// no secret yet.
func (u Unchecked) Hooked(ctx context.Context, tenant, id string) (Hooked, error) {
	at, err := u.s.rules.Parse(id)
	if err != nil {
		return Hooked{}, err
	}
	app, err := u.s.store.Head(ctx, tenant, at)
	if err != nil {
		return Hooked{}, err
	}
	if app.EditingID != nil || app.WebhookSecret == "" {
		return Hooked{}, errs.New(errs.NotFound, "App not found.")
	}
	h := Hooked{App: app.ID, Owner: app.RunsAs()}
	if h.Secret, err = u.s.webhookSecret(app); err != nil {
		return Hooked{}, err
	}
	h.Env, err = u.s.values(app)
	return h, err
}

// Manifest returns the manifest of an app that Running has returned. Errors: errs.Conflict for one
// that cannot be read.
func (u Unchecked) Manifest(ctx context.Context, app App) (Manifest, error) {
	return u.s.manifest(ctx, app)
}
