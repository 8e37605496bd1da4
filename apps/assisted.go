package apps

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Chat is what the author of an app has set for its chat, in the member chat of the settings.
// Invalid values are left out.
type Chat struct {
	Instructions string   // for the model: at most 64 KiB
	Welcome      string   // for people: at most 4 KiB
	Suggestions  []string // at most 20, of 500 characters
	Model        string   // "" for the default one
}

// Chat returns the settings of the app's chat.
func (a App) Chat() (c Chat) {
	var settings struct {
		Chat map[string]json.RawMessage `json:"chat"`
	}
	_ = json.Unmarshal(a.Settings, &settings) // an object, whose other members are free
	text := func(name string, most int) (text string) {
		if json.Unmarshal(settings.Chat[name], &text) != nil || len(text) > most {
			return ""
		}
		return text
	}
	c.Instructions, c.Welcome, c.Model = text("instructions", 64<<10), text("welcome", 4<<10), text("model", 200)
	var all []any
	_ = json.Unmarshal(settings.Chat["suggestions"], &all)
	for _, v := range all {
		if s, ok := v.(string); ok && s != "" && utf8.RuneCountInString(s) <= 500 && len(c.Suggestions) < 20 {
			c.Suggestions = append(c.Suggestions, s)
		}
	}
	return c
}

// CheckChat returns an app, or a draft, that the caller may run and so ask a model about, also with
// a token that can only read. Errors: errs.NotFound; errs.Forbidden.
func (s *Service) CheckChat(ctx context.Context, id string) (App, error) {
	return s.getFor(ctx, id, toRun, true)
}

// CheckRewrite returns an app, or a draft, that the caller may change, without changing it. Errors:
// errs.NotFound; errs.Forbidden.
func (s *Service) CheckRewrite(ctx context.Context, id string) (App, error) {
	return s.getFor(ctx, id, toWrite, false)
}

func (s *Service) getFor(ctx context.Context, id string, n need, reads bool) (App, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return App{}, err
	}
	app, grant, err := s.rules.Find(ctx, a, id)
	if err != nil {
		return App{}, err
	}
	a.ReadOnly = a.ReadOnly && !reads
	return app, n.check(a, app, grant)
}

// ManifestFile returns the manifest of an app that the caller may change as it is written, with the
// path of its file, and the paths of the app's first files. Without a manifest it returns the path
// that one has, and no text. Errors: as CheckRewrite; errs.TooLarge.
func (s *Service) ManifestFile(ctx context.Context, id string) (path, text string, files []string, err error) {
	app, err := s.CheckRewrite(ctx, id)
	if err != nil {
		return "", "", nil, err
	}
	page, err := s.files.Page(ctx, app.Tenant, app.LibraryID, paging.Query{Limit: 200, Sort: "path"})
	if err != nil {
		return "", "", nil, err
	}
	for _, f := range page.Rows {
		files = append(files, f.Path)
	}
	for _, name := range manifest.Files() {
		_, r, err := s.files.Open(ctx, app.Tenant, app.LibraryID, name)
		if errs.CodeOf(err) == errs.NotFound {
			continue
		}
		if err != nil {
			return "", "", nil, err
		}
		raw, err := io.ReadAll(io.LimitReader(r, manifest.MaxSize+1))
		if err := errors.Join(err, r.Close()); err != nil {
			return "", "", nil, err
		}
		if len(raw) > manifest.MaxSize || !utf8.Valid(raw) {
			return "", "", nil, errs.New(errs.TooLarge, "%s must be text of at most %d bytes.", name, manifest.MaxSize)
		}
		return name, string(raw), files, nil
	}
	return manifest.Files()[0], "", files, nil
}
