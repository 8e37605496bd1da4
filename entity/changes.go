package entity

import (
	"cmp"
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
	ActionDeploy Action = "deploy" // the code that it runs, or content of an archive, became visible to others
	ActionLogin  Action = "login"
	ActionScan   Action = "scan"
)

// Change is one change of an entity. Config.Before and Config.After of the root receive it, and the
// change feed stores it.
type Change struct {
	// Position is that in the feed of the tenant; 0 if the change was not read from the feed.
	Position int64  `json:"position,omitempty"`
	Tenant   string `json:"tenant"`
	Kind     Kind   `json:"kind"`
	// ID is the id of the entity. For a part of another entity, such as a membership, it is the id
	// of the other entity, a slash and the id of the part.
	ID     string `json:"id"`
	Action Action `json:"action"`
	Actor  string `json:"actor,omitempty"` // the username of the caller, "" for the service itself
	// Before and After are the JSON with which a GET of the entity answers a superuser, or nil.
	// They contain no secrets.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	At     time.Time       `json:"at"`
}

// ChangePage is one page of the change feed of a tenant.
type ChangePage struct {
	Rows []Change
	// Next is the position to continue from: that of the last row, or the reader's for a page
	// without rows.
	Next int64
	// Reset reports that changes after the position of the reader were removed, or that the
	// position was never in the feed. The reader has missed changes and must read the entities
	// again. Rows are then the oldest changes of the feed.
	Reset bool
}

// Changes is how services announce what they change. A nil *Changes records nothing.
type Changes struct{ o ChangesOptions }

// ChangesOptions configure a Changes. Show, InTx, AfterCommit and Now are required.
type ChangesOptions struct {
	// Show returns the id of an entity and the JSON with which a GET of it answers a superuser.
	// Both are empty for a kind without a GET. row is the entity if it was just written, else nil.
	// Errors: errs.NotFound.
	Show func(ctx context.Context, tenant string, of Key, row any) (id string, shown json.RawMessage, err error)
	// Before runs in the transaction of a change. If it returns an error, the transaction is rolled
	// back and the change fails with that error.
	Before []func(ctx context.Context, c Change) error
	// After runs after the commit.
	After []func(ctx context.Context, c Change)
	// Keep adds a change to the feed, in the transaction in ctx; nil: changes are not kept.
	Keep func(ctx context.Context, c Change) error
	// InTx runs fn in one transaction. AfterCommit runs f after the commit of the transaction in
	// ctx, with a context without a transaction.
	InTx        func(ctx context.Context, fn func(ctx context.Context) error) error
	AfterCommit func(ctx context.Context, f func(ctx context.Context))
	Now         func() time.Time
}

// NewChanges returns a Changes. It returns nil if o has no Before, After or Keep.
func NewChanges(o ChangesOptions) *Changes {
	if len(o.Before) == 0 && len(o.After) == 0 && o.Keep == nil {
		return nil
	}
	return &Changes{o}
}

// Subject is what a method of a service is about to change.
type Subject struct {
	Kind Kind
	// ID is the id as the caller wrote it; of an entity that is created its own, or "" if it is
	// not known yet.
	ID     string
	Action Action
	// TellsBefore reports that the write calls Changes.Was if the entity was there, so that it need
	// not be read before.
	TellsBefore bool
}

// recording is a Record that runs. It is in the context of its write.
type recording struct {
	of     Subject
	id     string     // the id of the entity, as its row has it
	was    any        // what Was got
	within *recording // the Record that it is a part of, nil for none
}

type recordingKey struct{}

func recordingIn(ctx context.Context) *recording {
	r, _ := ctx.Value(recordingKey{}).(*recording)
	return r
}

// outside returns a context that is not part of a Record, for functions of the host.
func outside(ctx context.Context) context.Context {
	if recordingIn(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, recordingKey{}, (*recording)(nil))
}

// has reports whether a Record that runs is about an entity.
func (r *recording) has(k Key) bool {
	for ; r != nil; r = r.within {
		if r.of.Kind == k.Kind && (r.id == k.ID || r.of.ID == k.ID) {
			return true
		}
	}
	return false
}

// Wanted reports whether a method must record what it does. It is false within a Record about the
// same entity, so that a method can record a call of itself:
//
//	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}
//	if s.feed.Wanted(ctx, of) {
//		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
//	}
func (c *Changes) Wanted(ctx context.Context, of Subject) bool {
	return c != nil && !recordingIn(ctx).has(Key{Kind: of.Kind, ID: of.ID})
}

// Part returns the id of a part of an entity in changes, or "" without listeners.
func (c *Changes) Part(of, part string) string {
	if c == nil {
		return ""
	}
	return of + "/" + part
}

// Was passes to the Record that runs in ctx what the entity of its Subject is before the write, as
// TellsBefore has promised.
func (c *Changes) Was(ctx context.Context, row any) {
	if r := recordingIn(ctx); c != nil && r != nil && r.of.TellsBefore {
		r.was = row
	}
}

// Record runs write in a transaction and announces the change. made returns the id of the entity
// that write created; nil: the id is that of the Subject.
func Record[T any](
	ctx context.Context, c *Changes, of Subject, made func(T) string,
	write func(ctx context.Context) (T, error),
) (v T, err error) {
	who, err := actor.From(ctx)
	if err != nil {
		return v, err
	}
	return record(ctx, c, who.Tenant, of, made, write)
}

// Do is Record for a write that returns only an error.
func (c *Changes) Do(ctx context.Context, of Subject, write func(ctx context.Context) error) error {
	_, err := Record(ctx, c, of, nil, func(ctx context.Context) (none struct{}, err error) { return none, write(ctx) })
	return err
}

// In is Do in any tenant, for a write that is in the same place whether or not it is recorded:
// otherwise it runs in the transaction of inTx, or in none if that is nil.
func (c *Changes) In(
	ctx context.Context, inTx func(context.Context, func(context.Context) error) error, tenant string, of Subject,
	write func(ctx context.Context) error,
) error {
	switch {
	case c.Wanted(ctx, of):
		_, err := record(ctx, c, tenant, of, nil, func(ctx context.Context) (none struct{}, err error) {
			return none, write(ctx)
		})
		return err
	case inTx != nil:
		return inTx(ctx, write)
	}
	return write(ctx)
}

func record[T any](
	ctx context.Context, c *Changes, tenant string, of Subject, made func(T) string,
	write func(ctx context.Context) (T, error),
) (v T, err error) {
	err = c.o.InTx(ctx, func(ctx context.Context) error {
		change := Change{Tenant: tenant, Kind: of.Kind, ID: of.ID, Action: of.Action, Actor: callerIn(ctx, tenant)}
		if of.Action == ActionLogin {
			change.Actor = of.ID
		}
		key, missing := Key{Kind: of.Kind, ID: of.ID}, false
		if of.ID != "" && of.Action != ActionCreate && of.Action != ActionLogin && !of.TellsBefore {
			id, before, err := c.show(ctx, tenant, key, nil)
			if missing = errs.CodeOf(err) == errs.NotFound; err != nil && !missing {
				return err
			}
			if change.Before = before; id != "" {
				change.ID, key.ID = id, id // the write may change the name in of.ID
			}
		}
		in := &recording{of: of, id: change.ID, within: recordingIn(ctx)}
		v, err = write(context.WithValue(ctx, recordingKey{}, in))
		if err != nil {
			return err
		}
		switch {
		case in.was != nil:
			if change.ID, change.Before, err = c.show(ctx, tenant, key, in.was); err != nil {
				return err
			}
			key.ID = cmp.Or(change.ID, key.ID)
		case of.TellsBefore:
			missing = true
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
			id, after, err := c.show(ctx, tenant, key, v)
			if err != nil && errs.CodeOf(err) != errs.NotFound {
				return err
			}
			if change.After = after; id != "" {
				change.ID = id
			}
		}
		return c.emit(ctx, change)
	})
	return v, err
}

// show is ChangesOptions.Show with masks for the secrets in data that the service does not define.
// It returns "" and nil for an entity that a GET refuses, such as one of a kind that is switched
// off in the tenant.
func (c *Changes) show(
	ctx context.Context, tenant string, k Key, row any,
) (id string, shown json.RawMessage, err error) {
	id, shown, err = c.o.Show(ctx, tenant, k, row)
	switch errs.CodeOf(err) {
	case errs.Invalid, errs.Forbidden, errs.Conflict:
		return "", nil, nil
	}
	return id, MaskSecrets(shown), err
}

// callerIn returns the username of the caller, "" for the service itself and for a caller of
// another tenant.
func callerIn(ctx context.Context, tenant string) string {
	who, err := actor.From(ctx)
	if err != nil || who.Tenant != tenant {
		return ""
	}
	return who.User
}

// Announce announces a change of an entity as it is now, without Before, in the transaction in ctx,
// which must have one.
func (c *Changes) Announce(ctx context.Context, tenant string, action Action, k Key) error {
	if c == nil {
		return nil
	}
	id, after, err := c.show(ctx, tenant, k, nil)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	return c.emit(ctx, Change{
		Tenant: tenant, Kind: k.Kind, ID: cmp.Or(id, k.ID), Action: action, Actor: callerIn(ctx, tenant), After: after,
	})
}

// Each announces a change of each of some entities that one write has changed, without Before and
// After, in the transaction in ctx, which must have one. It leaves out the entities of a Record
// that runs.
func (c *Changes) Each(ctx context.Context, tenant string, action Action, all ...Key) error {
	if c == nil || len(all) == 0 {
		return nil
	}
	user, in := callerIn(ctx, tenant), recordingIn(ctx)
	for _, k := range all {
		if in.has(k) {
			continue
		}
		err := c.emit(ctx, Change{Tenant: tenant, Kind: k.Kind, ID: k.ID, Action: action, Actor: user})
		if err != nil {
			return err
		}
	}
	return nil
}

// emit announces a change in the transaction in ctx and sets its At.
func (c *Changes) emit(ctx context.Context, change Change) error {
	ctx = outside(ctx)
	change.At = c.o.Now().UTC().Truncate(time.Microsecond)
	for _, before := range c.o.Before {
		if err := before(ctx, change); err != nil {
			return err
		}
	}
	if c.o.Keep != nil {
		kept := change
		if kept.Action == ActionDelete && kept.Kind == KindUser {
			kept.Before = nil // the feed does not keep data of a deleted user
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
