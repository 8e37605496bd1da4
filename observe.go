package tenantcontent

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// observedStatements tells an Observer of statements, as a hook of bun.
type observedStatements struct{ to entity.Observer }

// BeforeQuery implements bun.QueryHook.
func (o observedStatements) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	return entity.Begin(ctx, o.to, entity.StatementWork, verb(e.Query))
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

// systemOf returns what OpenTelemetry calls the database.
func systemOf(db *bun.DB) string {
	if db.Dialect().Name() == dialect.PG {
		return "postgresql"
	}
	return "sqlite"
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

// observed returns a Provider that notifies an Observer of calls.
func observed(p ai.Provider, to entity.Observer) ai.Provider {
	return chat.Around(p, func(ctx context.Context, r chat.Request, do func(context.Context) error) error {
		kind := "chat"
		if r.Image {
			kind = "image"
		}
		start := time.Now()
		ctx = entity.Begin(ctx, to, entity.ModelWork, kind)
		err := do(ctx)
		a, _ := actor.From(ctx) // there may be none
		entity.Observe(ctx, to, entity.Observation{
			Work:    entity.ModelWork,
			Tenant:  a.Tenant,
			Kind:    kind,
			Outcome: entity.Outcome(err),
			Start:   start,
		})
		return err
	})
}
