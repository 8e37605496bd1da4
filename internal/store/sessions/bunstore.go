// Package bunstore stores sessions and API tokens in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// Store implements sessions.Store.
type Store struct {
	db       *bun.DB
	notifier bunx.Notifier

	selectSession, selectCredential, selectUser string // for the engine of the database
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store {
	s := &Store{db: db}
	of := selectHolder
	if (bunx.Conn{DB: db}).Postgres() {
		of = selectHolderByKey
	}
	s.selectSession = of(sessionTable.Name, sessionTable.Qualified, "id")
	s.selectCredential = of(credentialTable.Name, credentialTable.Qualified, "id")
	s.selectUser = of("tc_users", "x.username", "username")
	return s
}

// CountTokens implements sessions.Store.
func (s *Store) CountTokens(ctx context.Context, tenant string) (int, error) {
	return bunx.Count(ctx, s.db, tenant, "tc_tokens")
}

// Notify makes the store call changed after each commit that removes a credential.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// session is a row of tc_sessions.
type session struct {
	tenant string
	sessions.Session
}

// sessionTable has the columns of a session. Readers pass the tenant and the id.
var sessionTable = bunx.NewTable("tc_sessions", "x", []bunx.Column[session]{
	{Name: "tenant_id", Key: true, Value: func(s *session) any { return s.tenant }},
	{Name: "id", Key: true, Value: func(s *session) any { return s.ID }},
	{Name: "username", Field: func(s *session) any { return &s.Username }},
	{Name: "created_at", Field: func(s *session) any { return bunx.TimeOf(&s.CreatedAt) }},
	{Name: "expires_at", Field: func(s *session) any { return bunx.TimeOf(&s.ExpiresAt) }},
	{Name: "password_set_at", Field: func(s *session) any { return bunx.TimeOf(&s.PasswordSetAt) }},
})

// credentialTable is tokenTable for an authentication, which reads only the columns it needs.
var credentialTable = tokenTable.Only(
	"type", "username", "secret_hash", "read_only", "restriction", "cidr", "data", "entity_kind", "entity_id",
	"expires_at",
)

// teamOf is the team of a membership m, NULL if it was deleted: the rows of its members remain for
// a while.
const teamOf = `(SELECT t.id FROM tc_teams t WHERE t.tenant_id = $1 AND t.id = m.team_id)`

// Holder implements sessions.Store.
func (s *Store) Holder(ctx context.Context, tenant, username string) (sessions.Holder, error) {
	var found string
	return s.authenticate(ctx, "User", s.selectUser, tenant, username, &found, &found)
}

// selectHolder returns a SELECT of some columns of a row x by its key, with its user, and a row for
// each of the user's teams.
func selectHolder(table, columns, key string) string {
	return `SELECT ` + columns + `, u.enabled, u.superuser, u.may_ai, u.password_set_at, ` + teamOf +
		`, m.role FROM ` + table + ` x
		JOIN tc_users u ON u.tenant_id = x.tenant_id AND u.username = x.username
		LEFT JOIN tc_memberships m ON m.tenant_id = x.tenant_id AND m.username = x.username
		WHERE x.tenant_id = $1 AND x.` + key + ` = $2` + served
}

// selectHolderByKey is selectHolder for PostgreSQL. It reads the row first, and then the user and
// the teams. Otherwise PostgreSQL could read all users of the tenant first, if it assumes that they
// are few, as in the minute after a scan.
func selectHolderByKey(table, columns, key string) string {
	return `SELECT ` + columns + `, u.enabled, u.superuser, u.may_ai, u.password_set_at, ` + teamOf +
		`, m.role FROM ` + table + ` x
		CROSS JOIN LATERAL (SELECT enabled, superuser, may_ai, password_set_at FROM tc_users WHERE tenant_id = $1 AND username = x.username OFFSET 0) u
		LEFT JOIN LATERAL (SELECT team_id, role FROM tc_memberships WHERE tenant_id = $1 AND username = x.username OFFSET 0) m ON TRUE
		WHERE x.tenant_id = $1 AND x.` + key + ` = $2` + served
}

// served is the condition that the tenant is not being deleted or imported.
const served = ` AND EXISTS (SELECT 1 FROM tc_tenants t WHERE t.tenant_id = $1 AND t.hidden IS NULL)`

// authenticate runs a SELECT of selectHolder. It scans the columns of x into dest; username is the
// destination of the user's name among them.
func (s *Store) authenticate(
	ctx context.Context, what, query, tenant, id string, username *string, dest ...any,
) (sessions.Holder, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, query, tenant, id)
	if err != nil {
		return sessions.Holder{}, bunx.Err(err, what)
	}
	defer func() { _ = rows.Close() }()
	var h sessions.Holder
	var passwordSetAt bunx.Time
	var team *string
	var role *int
	dest = append(dest, &h.Enabled, &h.Superuser, &h.AI, &passwordSetAt, &team, &role)
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return sessions.Holder{}, err
		}
		if team != nil {
			if h.Teams == nil {
				h.Teams = map[string]actor.Role{}
			}
			h.Teams[*team] = actor.Role(*role)
		}
	}
	err = errors.Join(rows.Err(), rows.Close())
	if err == nil && *username == "" {
		err = sql.ErrNoRows
	}
	h.Username, h.PasswordSetAt = *username, passwordSetAt.Time
	return h, bunx.Err(err, what)
}

// InsertSession implements sessions.Store. The row may be deferred: see bunx.WriteSoon.
func (s *Store) InsertSession(ctx context.Context, tenant string, x sessions.Session) error {
	var of identity
	decided := false
	return bunx.WriteSoon(ctx, s.db, tenant, bunx.Soon{
		Run: func(ctx context.Context, c bunx.Conn) error {
			if decided {
				if now, err := user(ctx, c, tenant, x.Username); err != nil || now != of {
					return cmp.Or(err, errs.New(errs.Conflict, "The user was changed after the login."))
				}
			}
			_, err := sessionTable.Insert(ctx, c, "", session{tenant, x})
			if err == nil && x.Provider != nil {
				_, err = providerTable.Insert(ctx, c, "", providerSession{tenant, x.ID, *x.Provider})
			}
			return bunx.Err(err, "Session")
		},
		Decide: func(ctx context.Context) (bunx.DeferredWrite, error) {
			_, err := s.Holder(ctx, tenant, x.Username)
			if err == nil {
				ctx, c := bunx.For(ctx, s.db, tenant)
				of, err = user(ctx, c, tenant, x.Username)
			}
			if errs.CodeOf(err) == errs.NotFound {
				err = errs.Wrap(
					errs.Conflict, err,
					"Session refers to something that does not exist, or is still referred to.",
				)
			}
			decided = true
			ended := func() { s.notifier.AfterCommit(context.Background(), tenant) }
			return bunx.DeferredWrite{
				Key:     sessionKey(x.ID),
				Value:   waiting{x, of},
				Dropped: ended,
				Group:   bunx.LoginsOf(x.Username),
			}, err
		},
		After: bunx.LoginsOf(x.Username), Since: x.CreatedAt,
	})
}

// sessionKey returns the key for the deferred writes of a session.
func sessionKey(id string) string { return "session " + id }

// waiting is a session that is not stored yet.
type waiting struct {
	sessions.Session
	of identity
}

func isWaiting(value any) bool {
	_, ok := value.(waiting)
	return ok
}

// waitingIn returns the session among the values of deferred writes.
func waitingIn(values []any) (x waiting, ok bool) {
	if i := slices.IndexFunc(values, isWaiting); i >= 0 {
		x, ok = values[i].(waiting)
	}
	return x, ok
}

// dropWaiting drops the sessions of a tenant that match and are not stored yet, and returns their
// number. It runs in the transaction that deletes the stored ones.
func (s *Store) dropWaiting(ctx context.Context, tenant string, match func(x sessions.Session) bool) int {
	return bunx.DropDeferredOf(ctx, s.db, tenant, func(v any) bool {
		x, ok := v.(waiting)
		return ok && match(x.Session)
	})
}

// identity distinguishes users that have had the same name, and has whether the user was enabled.
type identity struct {
	domain, sourceID string
	createdAt        time.Time
	enabled          bool
}

// user returns the identity of a user.
func user(ctx context.Context, c bunx.Conn, tenant, username string) (of identity, err error) {
	var createdAt bunx.Time
	err = c.One(ctx, "User",
		`SELECT domain, coalesce(source_id, ''), created_at, enabled FROM tc_users WHERE tenant_id = $1 `+
			`AND username = $2`,
		[]any{tenant, username}, &of.domain, &of.sourceID, &createdAt, &of.enabled)
	of.createdAt = createdAt.Time
	return of, err
}

// Session implements sessions.Store.
func (s *Store) Session(ctx context.Context, tenant, id string) (x sessions.Session, h sessions.Holder, err error) {
	err = bunx.FindDeferred(s.db, tenant, sessionKey(id), func(values []any) (err error) {
		row := session{tenant, sessions.Session{ID: id}}
		h, err = s.authenticate(ctx, "Session", s.selectSession, tenant, id, &row.Username, sessionTable.Dest(&row)...)
		x = row.Session
		if slices.Contains(values, any(ended{})) {
			return errs.New(errs.NotFound, "Session not found.")
		}
		late, ok := waitingIn(values)
		if !ok || errs.CodeOf(err) != errs.NotFound {
			return err
		}
		x = late.Session
		x.Provider = nil
		if h, err = s.Holder(ctx, tenant, x.Username); err != nil {
			return err
		}
		ctx, c := bunx.For(ctx, s.db, tenant)
		if now, err := user(ctx, c, tenant, x.Username); err != nil || now != late.of { // it will not be stored
			return cmp.Or(err, errs.New(errs.NotFound, "Session not found."))
		}
		return nil
	})
	return x, h, err
}

// ended is the value of a deferred deletion of a stored session.
type ended struct{}

// EndSession implements sessions.Store. The deletion may be deferred, once for each session: see
// bunx.WriteSoon.
func (s *Store) EndSession(ctx context.Context, tenant, id string) error {
	if bunx.DropDeferred(s.db, tenant, sessionKey(id), isWaiting) {
		s.notifier.AfterCommit(ctx, tenant)
		return nil
	}
	waits := false
	err := bunx.FindDeferred(s.db, tenant, sessionKey(id), func(values []any) error {
		waits = slices.Contains(values, any(ended{}))
		return nil
	})
	if err == nil && !waits {
		err = bunx.WriteSoon(ctx, s.db, tenant, bunx.Soon{
			Run: func(ctx context.Context, c bunx.Conn) error { return s.deleteSession(ctx, c, tenant, id) },
			Decide: func(context.Context) (bunx.DeferredWrite, error) {
				waits = true
				return bunx.DeferredWrite{Key: sessionKey(id), Value: ended{}}, nil
			},
		})
		if errs.CodeOf(err) == errs.Unavailable { // too many writes are deferred: wait as other writes do
			return s.DeleteSession(ctx, tenant, id)
		}
	}
	if err != nil || !waits {
		return err
	}
	s.notifier.AfterCommit(ctx, tenant)
	if err = bunx.WriteDeferred(ctx, s.db); errors.Is(err, errs.ErrDatabaseBusy) {
		return errs.Wrap(errs.Unavailable, err,
			"You are logged out, but another change of the database takes so long that this is not stored yet: "+
				"if the server is killed before it is, the session goes on until it expires.")
	}
	return err
}

func (s *Store) deleteSession(ctx context.Context, c bunx.Conn, tenant, id string) error {
	s.notifier.AfterCommit(ctx, tenant)
	_, err := c.Exec(ctx, `DELETE FROM tc_sessions WHERE tenant_id = $1 AND id = $2`, tenant, id)
	return bunx.Err(err, "Session")
}

// DeleteSession implements sessions.Store.
func (s *Store) DeleteSession(ctx context.Context, tenant, id string) error {
	if bunx.DropDeferred(s.db, tenant, sessionKey(id), isWaiting) {
		s.notifier.AfterCommit(ctx, tenant)
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return s.deleteSession(ctx, c, tenant, id)
	})
}

// Sweep implements sessions.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time) (n int, err error) {
	return bunx.DeleteSteps(ctx, s.db, tenant, "tc_sessions", "id", `expires_at <= $2`, bunx.At(before))
}

// token is a row of tc_tokens.
type token struct {
	tenant string
	sessions.Token
}

// tokenTable has the columns of a token. Readers pass the tenant.
var tokenTable = bunx.NewTable("tc_tokens", "x", []bunx.Column[token]{
	{Name: "tenant_id", Key: true, Value: func(t *token) any { return t.tenant }},
	{Name: "id", Key: true, Field: func(t *token) any { return &t.ID }},
	{Name: "type", Field: func(t *token) any { return &t.Type }},
	{Name: "username", Field: func(t *token) any { return &t.Username }},
	{Name: "secret_hash", Field: func(t *token) any { return &t.SecretHash }},
	{Name: "read_only", Field: func(t *token) any { return &t.ReadOnly }},
	{Name: "notes", Field: func(t *token) any { return &t.Notes }},
	{Name: "restriction", Field: func(t *token) any { return &t.Restrict }},
	{Name: "host", Field: func(t *token) any { return &t.Host }},
	{Name: "cidr", Field: func(t *token) any { return &t.CIDR }},
	{Name: "data", Field: func(t *token) any { return bunx.JSONOrNull(&t.Data) }},
	{Name: "entity_kind", Field: func(t *token) any { return bunx.TextOrNull((*string)(&t.Entity.Kind)) }},
	{Name: "entity_id", Field: func(t *token) any { return bunx.TextOrNull(&t.Entity.ID) }},
	{Name: "requests", Field: func(t *token) any { return &t.Requests }},
	{Name: "blocked", Field: func(t *token) any { return &t.Blocked }},
	{Name: "last_accessed_at", Field: func(t *token) any { return bunx.TimeOrNull(&t.LastAccessedAt) }},
	{Name: "expires_at", Field: func(t *token) any { return bunx.TimeOrNull(&t.ExpiresAt) }},
	{Name: "created_at", Field: func(t *token) any { return bunx.TimeOf(&t.CreatedAt) }},
	{Name: "updated_at", Field: func(t *token) any { return bunx.TimeOf(&t.UpdatedAt) }},
})

// InsertToken implements sessions.Store.
func (s *Store) InsertToken(ctx context.Context, tenant string, t sessions.Token) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := tokenTable.Insert(ctx, c, "", token{tenant, t})
		return bunx.Err(err, "Token")
	})
}

// Token implements sessions.Store.
func (s *Store) Token(ctx context.Context, tenant, id string) (sessions.Token, sessions.Holder, error) {
	t := token{tenant, sessions.Token{ID: id}}
	h, err := s.authenticate(ctx, "Token", s.selectCredential, tenant, id, &t.Username, credentialTable.Dest(&t)...)
	return t.Token, h, err
}

var list = bunx.List[token]{
	Table: tokenTable, Key: "id", Order: "-createdAt",
	Sorts: []bunx.Sort[token]{{Field: "createdAt", Column: "created_at", Value: func(t token) string {
		return bunx.At(t.CreatedAt).String()
	}}},
}

// The conditions of personal tokens and of those of an entity. The number of an id follows.
const (
	ofUser   = `tenant_id = $1 AND username = $2 AND entity_kind IS NULL`
	ofEntity = `tenant_id = $1 AND entity_kind = $2 AND entity_id = $3 AND type = $4`
)

var (
	selectUserToken   = tokenTable.Select(`WHERE ` + ofUser + ` AND id = $3`)
	selectEntityToken = tokenTable.Select(`WHERE ` + ofEntity + ` AND id = $5`)
)

// argsOf returns the arguments of ofUser or ofEntity.
func argsOf(tenant string, of sessions.TokensOf) []any {
	if of.Type == sessions.Personal {
		return []any{tenant, of.EntityID}
	}
	return []any{tenant, of.Entity().Kind, of.EntityID, of.Type}
}

// Tokens implements sessions.Store.
func (s *Store) Tokens(
	ctx context.Context, tenant string, of sessions.TokensOf, q paging.Query,
) (paging.Page[sessions.Token], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	these := bunx.Part{
		Where: "x.tenant_id = $1 AND x.entity_kind = $2 AND x.entity_id = $3 AND x.type = $4",
		Args:  argsOf(tenant, of),
	}
	if of.Type == sessions.Personal {
		these.Where = "x.tenant_id = $1 AND x.username = $2 AND x.entity_kind IS NULL"
	}
	page, err := bunx.Page(ctx, c, list, these, func(t token) string { return t.ID }, q)
	return paging.Map(page, func(t token) sessions.Token { return t.Token }), err
}

// TokenOf implements sessions.Store.
func (s *Store) TokenOf(ctx context.Context, tenant string, of sessions.TokensOf, id string) (sessions.Token, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	statement := selectEntityToken
	if of.Type == sessions.Personal {
		statement = selectUserToken
	}
	t, err := tokenTable.Scan(c.Row(ctx, statement, append(argsOf(tenant, of), id)...))
	return t.Token, bunx.Err(err, "Token")
}

// DeleteToken implements sessions.Store.
func (s *Store) DeleteToken(ctx context.Context, tenant string, of sessions.TokensOf, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		s.notifier.AfterCommit(ctx, tenant)
		statement := `DELETE FROM tc_tokens WHERE ` + ofEntity + ` AND id = $5`
		if of.Type == sessions.Personal {
			statement = `DELETE FROM tc_tokens WHERE ` + ofUser + ` AND id = $3`
		}
		n, err := c.Exec(ctx, statement, append(argsOf(tenant, of), id)...)
		return bunx.Found(n, err, "Token")
	})
}

// DeleteTokensOf implements sessions.Store.
func (s *Store) DeleteTokensOf(ctx context.Context, tenant string, kind entity.Kind, ids []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		s.notifier.AfterCommit(ctx, tenant)
		_, err := c.Exec(
			ctx, `DELETE FROM tc_tokens WHERE tenant_id = $1 AND entity_kind = $2 AND entity_id `+c.OneOf(3),
			tenant, kind, bunx.Keys(ids),
		)
		return bunx.Err(err, "Token")
	})
}

// LiveTokens implements sessions.Store.
func (s *Store) LiveTokens(ctx context.Context, tenant, username string, at time.Time) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, "Token",
		`SELECT count(*) FROM tc_tokens WHERE tenant_id = $1 AND username = $2 `+
			`AND (expires_at IS NULL OR expires_at > $3)`,
		[]any{tenant, username, bunx.At(at)}, &n)
	return n, err
}

// DeleteTokens implements sessions.Store.
func (s *Store) DeleteTokens(ctx context.Context, tenant, username string) (n int, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		s.notifier.AfterCommit(ctx, tenant)
		n, err = c.Exec(ctx, `DELETE FROM tc_tokens WHERE tenant_id = $1 AND username = $2`, tenant, username)
		return bunx.Err(err, "Token")
	})
	return n, err
}

// EndLogins implements sessions.Store.
func (s *Store) EndLogins(ctx context.Context, tenant string, usernames []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		s.notifier.AfterCommit(ctx, tenant)
		s.dropWaiting(ctx, tenant, func(x sessions.Session) bool { return slices.Contains(usernames, x.Username) })
		of := ` WHERE tenant_id = $1 AND username ` + c.OneOf(2)
		if _, err := c.Exec(ctx, `DELETE FROM tc_sessions`+of, tenant, bunx.Keys(usernames)); err != nil {
			return bunx.Err(err, "Session")
		}
		_, err := c.Exec(ctx, `DELETE FROM tc_tokens`+of+` AND entity_kind IS NULL`, tenant, bunx.Keys(usernames))
		return bunx.Err(err, "Token")
	})
}

// Count implements sessions.Store. Tokens are updated in the order of their ids, so that concurrent
// calls do not deadlock.
func (s *Store) Count(ctx context.Context, tenant string, uses map[string]sessions.Use) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, id := range slices.Sorted(maps.Keys(uses)) {
			u := uses[id]
			_, err := c.Exec(ctx, `UPDATE tc_tokens SET requests = requests + $1, blocked = blocked + $2,
				last_accessed_at = CASE WHEN last_accessed_at > $3 THEN last_accessed_at ELSE coalesce($3, last_accessed_at) END
				WHERE tenant_id = $4 AND id = $5`,
				u.Requests, u.Blocked, bunx.At(u.LastAccessedAt), tenant, id)
			if err != nil {
				return bunx.Err(err, "Token")
			}
		}
		return nil
	})
}
