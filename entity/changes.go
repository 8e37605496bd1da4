package entity

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Action is what happened to an entity.
type Action string

// The actions of changes.
const (
	ActionCreate Action = "create"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"
	ActionShare  Action = "share"  // a share of the entity was set or removed
	ActionDeploy Action = "deploy" // what it runs, or an archive that it brought, became others' to see
	ActionLogin  Action = "login"
	ActionScan   Action = "scan"
)

// Change is one change of an entity, as Config.Before and Config.After of the root get it and the
// change feed keeps it.
type Change struct {
	Position int64  `json:"position,omitempty"` // in the feed of the tenant; 0 until it is read from there
	Tenant   string `json:"tenant"`
	Kind     Kind   `json:"kind"`
	// ID is the id of the entity. That of something inside of another entity, such as a
	// membership, is the id of the other one, a slash and its own.
	ID     string `json:"id"`
	Action Action `json:"action"`
	Actor  string `json:"actor,omitempty"` // the username of the caller, "" for the service itself
	// Before and After are the JSON that a GET of the entity shows a superuser, nil where there
	// is none. They have no secret.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	At     time.Time       `json:"at"`
}

// ChangePage is a part of the change feed of a tenant.
type ChangePage struct {
	Rows []Change
	// Next is the position to read on from: that of the last row, or where the reader was.
	Next int64
	// Reset reports that changes after the position of the reader are not kept any more, or that
	// the feed never had it: the reader has missed some, and must read anew what it mirrors. Rows
	// are the oldest that there are.
	Reset bool
}

// Changes is where services announce what they change. A nil *Changes is one that nobody listens
// to, and costs nothing.
type Changes struct{ o ChangesOptions }

// ChangesOptions say what is done with changes. Show, InTx, AfterCommit and Now are required.
type ChangesOptions struct {
	// Show returns the JSON that a GET of an entity shows a superuser, and its own id; nothing for
	// a kind that has no GET. row is the entity if it has just been written, else nil. Errors:
	// errs.NotFound.
	Show func(ctx context.Context, tenant string, of Key, row any) (id string, shown json.RawMessage, err error)
	// Before runs in the transaction of a change. Its error is that of the change, which then is
	// not made.
	Before []func(ctx context.Context, c Change) error
	// After runs after the commit.
	After []func(ctx context.Context, c Change)
	// Keep adds a change to the feed, in the transaction in ctx; nil: it is not kept.
	Keep func(ctx context.Context, c Change) error
	// InTx runs fn in one transaction, and AfterCommit runs f after the commit of the one in ctx,
	// with a context that has none.
	InTx        func(ctx context.Context, fn func(ctx context.Context) error) error
	AfterCommit func(ctx context.Context, f func(ctx context.Context))
	Now         func() time.Time
}

// NewChanges returns a Changes, which is nil if nobody is to hear of changes.
func NewChanges(o ChangesOptions) *Changes {
	if len(o.Before) == 0 && len(o.After) == 0 && o.Keep == nil {
		return nil
	}
	return &Changes{o}
}

// Subject is what a method of a service is about to do.
type Subject struct {
	Kind   Kind
	ID     string // as the caller wrote it; "" for one that is made
	Action Action
}

// recording is the Subject of the innermost Record in a context.
type recordingKey struct{}

// Wanted reports whether a method is to record what it does. It is false within the call of Record
// for the same Subject, so that a method can record the call of itself:
//
//	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}
//	if s.changes.Wanted(ctx, of) {
//		return s.changes.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
//	}
func (c *Changes) Wanted(ctx context.Context, of Subject) bool {
	if c == nil {
		return false
	}
	in, ok := ctx.Value(recordingKey{}).(Subject)
	return !ok || in != of
}

// Record runs write in a transaction, and announces what it has changed. made returns the id of
// what write has made; nil: it is that of the Subject.
func Record[T any](
	ctx context.Context, c *Changes, of Subject, made func(T) string,
	write func(ctx context.Context) (T, error),
) (v T, err error) {
	who, err := actor.From(ctx)
	if err != nil {
		return v, err
	}
	return RecordIn(ctx, c, who.Tenant, who.User, of, made, write)
}

// RecordIn is Record for a tenant and a user, "" for the service itself.
func RecordIn[T any](
	ctx context.Context, c *Changes, tenant, user string, of Subject, made func(T) string,
	write func(ctx context.Context) (T, error),
) (v T, err error) {
	err = c.o.InTx(ctx, func(ctx context.Context) error {
		change := Change{Tenant: tenant, Kind: of.Kind, ID: of.ID, Action: of.Action, Actor: user}
		key, missing := Key{Kind: of.Kind, ID: of.ID}, false
		if of.ID != "" {
			id, before, err := c.o.Show(ctx, tenant, key, nil)
			if missing = errs.CodeOf(err) == errs.NotFound; err != nil && !missing {
				return err
			}
			if change.Before = before; id != "" {
				change.ID = id
			}
		}
		v, err = write(context.WithValue(ctx, recordingKey{}, of))
		if err != nil {
			return err
		}
		if made != nil {
			key.ID = made(v)
			change.ID = key.ID
		}
		switch {
		case of.Action == ActionDelete && missing:
			return nil
		case of.Action == ActionUpdate && missing:
			change.Action = ActionCreate
		}
		if of.Action != ActionDelete {
			id, after, err := c.o.Show(ctx, tenant, key, v)
			if err != nil && errs.CodeOf(err) != errs.NotFound {
				return err
			}
			if change.After = after; id != "" {
				change.ID = id
			}
		}
		return c.Emit(ctx, change)
	})
	return v, err
}

// Do is Record for a write that returns nothing but an error.
func (c *Changes) Do(ctx context.Context, of Subject, write func(ctx context.Context) error) error {
	_, err := Record(ctx, c, of, nil, func(ctx context.Context) (none struct{}, err error) { return none, write(ctx) })
	return err
}

// Emit announces a change in the transaction in ctx: see Record, which calls it. It sets At.
func (c *Changes) Emit(ctx context.Context, change Change) error {
	if c == nil {
		return nil
	}
	return c.emit(ctx, change)
}

func (c *Changes) emit(ctx context.Context, change Change) error {
	change.At = c.o.Now().UTC().Truncate(time.Microsecond)
	for _, before := range c.o.Before {
		if err := before(ctx, change); err != nil {
			return err
		}
	}
	if c.o.Keep != nil {
		kept := change
		if kept.Action == ActionDelete && kept.Kind == KindUser {
			kept.Before = nil // is forgotten
		}
		if err := c.o.Keep(ctx, kept); err != nil {
			return err
		}
	}
	if len(c.o.After) > 0 {
		c.o.AfterCommit(ctx, func(ctx context.Context) {
			for _, after := range c.o.After {
				after(ctx, change)
			}
		})
	}
	return nil
}
