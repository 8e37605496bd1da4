package tenantcontent

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// observedStatements tells an Observer of statements, as a hook of bun.
type observedStatements struct{ to entity.Observer }

// BeforeQuery implements bun.QueryHook.
func (observedStatements) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context {
	return ctx
}

// AfterQuery implements bun.QueryHook.
func (o observedStatements) AfterQuery(ctx context.Context, e *bun.QueryEvent) {
	err := e.Err
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	entity.Observe(ctx, o.to, entity.Observation{
		Work: entity.StatementWork, Tenant: bunx.Tenant(ctx),
		Kind: verb(e.Query), Outcome: entity.Outcome(bunx.Err(err, "")), Start: e.StartTime,
	})
}

// verb returns the first word of a statement.
func verb(query string) string {
	query = strings.TrimLeft(query, " \t\n(")
	end := strings.IndexFunc(query, func(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' })
	if end < 0 {
		end = len(query)
	}
	return strings.ToUpper(query[:end])
}

// observedModels tells an Observer of the calls of a Provider.
type observedModels struct {
	ai.Provider
	to entity.Observer
}

// observed returns a Provider that tells an Observer of calls. It makes images, and has a list of
// models, if p does.
func observed(p ai.Provider, to entity.Observer) ai.Provider {
	if to == nil || ai.Configured(p) != nil {
		return p
	}
	o := observedModels{p, to}
	images, makes := p.(ai.Imager)
	list, lists := p.(ai.Lister)
	switch {
	case makes && lists:
		return struct {
			observedModels
			observedImages
			ai.Lister
		}{o, observedImages{images, to}, list}
	case makes:
		return struct {
			observedModels
			observedImages
		}{o, observedImages{images, to}}
	case lists:
		return struct {
			observedModels
			ai.Lister
		}{o, list}
	}
	return o
}

// Chat implements ai.Provider.
func (o observedModels) Chat(ctx context.Context, r ai.Request, emit func(ai.Part) error) (ai.Answer, error) {
	start := time.Now()
	answer, err := o.Provider.Chat(ctx, r, emit)
	observeModel(ctx, o.to, "chat", start, err)
	return answer, err
}

// observedImages tells an Observer of the calls of an Imager.
type observedImages struct {
	of ai.Imager
	to entity.Observer
}

// Image implements ai.Imager.
func (o observedImages) Image(ctx context.Context, r ai.ImageRequest) (ai.Image, error) {
	start := time.Now()
	image, err := o.of.Image(ctx, r)
	observeModel(ctx, o.to, "image", start, err)
	return image, err
}

func observeModel(ctx context.Context, to entity.Observer, kind string, start time.Time, err error) {
	a, _ := actor.From(ctx) // there may be none
	entity.Observe(ctx, to, entity.Observation{
		Work:    entity.ModelWork,
		Tenant:  a.Tenant,
		Kind:    kind,
		Outcome: entity.Outcome(err),
		Start:   start,
	})
}
