package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/clock"
)

// edit creates a draft or continues with one, makes it equal to the folder, and publishes it unless
// it must stay open. c is the difference of the published app, and published the plan for it.
func (p *push) edit(ctx context.Context, c comparison, published plan) (result pushed, err error) {
	if d := c.DraftID; d != nil && *d != p.folder.state.Draft && !p.Draft && !p.Force {
		return result, errs.New(errs.Conflict,
			"the app has a draft, %s, that no push of this folder has begun%s, and with it what somebody has not "+
				"published: "+
				"push into it with --draft, publish it together with these files with --force, or wait until it is "+
				"published or discarded",
			harmless(*d), p.editor(ctx, c.ID))
	}
	var draft struct {
		ID              string  `json:"id"`
		EditingHeld     bool    `json:"editingHeld"`
		EditingLockedBy foreign `json:"editingLockedBy"`
	}
	edit := hal.Href("apps", c.ID, "_edit")
	if err := p.call(ctx, http.MethodPost, edit, map[string]bool{"force": p.Force}, &draft); err != nil {
		return result, err
	}
	if !draft.EditingHeld {
		return result, errs.New(
			errs.Conflict,
			"the draft is being edited by %s in another session: wait, or take it over with --force",
			draft.EditingLockedBy,
		)
	}
	begun := &published
	if draft.ID != p.folder.state.Draft {
		begun = nil
	}
	err = p.updateState(c.Tenant, c.ID, func(s *state) {
		s.Draft = draft.ID
		if p.Force { // which resolves the differences
			s.Files = maps.Clone(published.known)
			for _, path := range c.Differs {
				s.Files[path] = c.Digests[path]
			}
			for _, path := range c.Missing {
				delete(s.Files, path)
			}
		}
	})
	if err != nil {
		return result, err
	}
	renewing, end := context.WithCancel(ctx)
	defer end()
	go p.renew(renewing, edit)

	todo, err := p.draft(ctx, c, draft.ID, begun)
	if err != nil {
		return result, p.failed(err)
	}
	viewed := c.ID
	if p.Draft {
		viewed = draft.ID
	}
	if result, err = p.result(todo, c, &draft.ID, viewed); err != nil || p.Draft {
		return result, err
	}
	p.shown.begin("publishing", 0)
	var answer struct{ Deployed *runs }
	if err := p.call(
		ctx, http.MethodPost, hal.Href("apps", c.ID, "draft", "_commit"),
		map[string]bool{"force": p.Force, "strict": p.Strict}, &answer,
	); err != nil {
		if ctx.Err() != nil {
			return result, interrupted("the app may be published: the next push shows whether it is")
		}
		if errs.CodeOf(err) == errs.Unavailable {
			return result, errs.Wrap(
				errs.Unavailable, err,
				"the server did not answer whether it has published: the next push shows it",
			)
		}
		return result, p.failed(err)
	}
	result.Published, result.Draft, result.Deployed = true, nil, answer.Deployed
	return result, p.saveSynced(c, "", todo)
}

// editor returns the user that edits the draft of an app, in a form for sentences, or "".
func (p *push) editor(ctx context.Context, app string) string {
	var draft struct {
		EditingLockedBy foreign `json:"editingLockedBy"`
	}
	if err := p.call(ctx, http.MethodGet, hal.Href("apps", app, "draft"), nil, &draft); err != nil ||
		draft.EditingLockedBy == "" {
		return ""
	}
	return fmt.Sprintf(" and %s is editing", draft.EditingLockedBy)
}

// draft makes a draft of app equal to the folder. begun is the plan for the published app if an
// earlier push has begun the draft.
func (p *push) draft(ctx context.Context, app comparison, id string, begun *plan) (plan, error) {
	c, err := p.compare(ctx, id)
	if err != nil {
		return plan{}, err
	}
	todo, err := p.plan(c, begun)
	if err != nil {
		return plan{}, err
	}
	var bytes int64
	sent := slices.Clone(p.folder.state.Sent)
	for _, file := range slices.Concat(todo.added, todo.changed) {
		bytes += file.size
		sent = append(sent, file.sha256)
	}
	slices.Sort(sent)
	if err := p.updateState(app.Tenant, app.ID, func(s *state) { s.Sent = slices.Compact(sent) }); err != nil {
		// first, in case the push is killed
		return plan{}, err
	}
	p.shown.begin("sending", bytes)
	err = parallel(ctx, todo.removed, func(ctx context.Context, path string) error {
		// first, because new files may need their paths
		return p.remove(ctx, id, path)
	})
	if err != nil {
		return plan{}, err
	}
	sign := func(sign string) func(context.Context, localFile) error {
		return func(ctx context.Context, file localFile) error {
			err := p.put(ctx, id, file)
			if err == nil {
				p.out.file(sign, file.path)
			}
			return err
		}
	}
	if err := parallel(ctx, todo.added, sign("+")); err != nil {
		return plan{}, err
	}
	return todo, parallel(ctx, todo.changed, sign("~"))
}

// parallel calls do with each of all, several concurrently, until one fails.
func parallel[T any](ctx context.Context, all []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, one) })
	}
	return group.Wait()
}

// failed adds to an error that the draft is still open, and what --force can do.
func (p *push) failed(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	hint := "Nothing is published: the next push goes on."
	refused, ok := errors.AsType[*refusal](err)
	if !ok {
		return errs.New(errs.CodeOf(err), "%v\n%s", err, hint)
	}
	if refused.code == http.StatusConflict && !p.Force {
		hint += " --force takes over the draft, and publishes over changes."
	}
	return &refusal{refused.code, fmt.Sprintf("%v\n%s", err, hint), refused.message}
}

// remove removes a file of a draft. It returns nil if the file does not exist.
func (p *push) remove(ctx context.Context, draft, path string) error {
	err := p.call(ctx, http.MethodDelete, contentOf(draft, path), nil, nil)
	if refused, ok := errors.AsType[*refusal](err); ok && refused.code == http.StatusNotFound {
		err = nil
	}
	if err == nil {
		p.out.file("-", path)
	}
	return err
}

func contentOf(app, path string) string {
	return hal.Href(append([]string{"apps", app, "contents"}, strings.Split(path, "/")...)...)
}

// put uploads a file to a draft.
func (p *push) put(ctx context.Context, draft string, file localFile) error {
	var stored struct {
		SHA256 string `json:"sha256"`
	}
	err := again(ctx, func() error {
		opened, err := p.folder.Open(file.name())
		if err != nil {
			return errs.New(errs.Invalid, "%s: cannot be read: %v", harmless(file.path), cause(err))
		}
		defer func() { _ = opened.Close() }()
		body := io.NopCloser(io.TeeReader(opened, p.shown)) // net/http may read it after an early answer
		res, err := p.send(ctx, outgoing{
			http.MethodPut, contentOf(draft, file.path), body, file.size, "application/octet-stream",
		})
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if err := json.NewDecoder(res.Body).Decode(&stored); err != nil {
			return errs.Wrap(errs.Unavailable, err, "%s answered what is no JSON", p.Server)
		}
		_, err = io.Copy(io.Discard, res.Body)
		return err
	})
	switch refused, ok := errors.AsType[*refusal](err); {
	case ok:
		return &refusal{
			refused.code, harmless(file.path) + ": " + refused.text,
			harmless(file.path) + ": " + refused.message,
		}
	case err != nil && ctx.Err() == nil && p.changed(file):
		return errs.Wrap(errs.Conflict, err, "%s was changed while it was sent: push again", harmless(file.path))
	case err == nil && stored.SHA256 != file.sha256:
		return errs.New(errs.Conflict, "%s was changed while it was sent: push again", harmless(file.path))
	}
	return err
}

// changed reports whether the size of a file has changed since it was compared.
func (p *push) changed(file localFile) bool {
	info, err := p.folder.Stat(file.name())
	return err != nil || info.Size() != file.size
}

// renewal is how often a push renews its lock of the draft, which lasts for five minutes.
const renewal = time.Minute

// renew renews the lock of a draft until ctx ends. If that fails, the requests that need the lock
// fail.
func (p *push) renew(ctx context.Context, edit string) {
	for range clock.Each(ctx, renewal) {
		_ = p.call(ctx, http.MethodPost, edit, nil, nil)
	}
}
