package bunstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// user is the table's shape except for the password's hash, which EditLogin alone writes and Login alone reads.
type user struct {
	bun.BaseModel `bun:"table:tc_users,alias:u"`

	TenantID          string `bun:",pk"`
	Username          string `bun:",pk"`
	Folded            string
	Label             string
	Search            string
	Domain            string
	DisplayName       *string
	FamilyName        *string
	GivenName         *string
	MiddleName        *string
	Email             *string
	Timezone          *string
	Superuser         bool
	Enabled           bool
	DirectoryDisabled bool
	MayAI             bool `bun:"may_ai"`
	MayCreateJobs     bool
	MayViewAllTeams   bool
	MayViewAllUsers   bool
	MayScript         bool
	Source            *string
	SourceID          *string `bun:"source_id"`
	Data              string
	UserFields        string
	PasswordSetAt     bunx.Time
	PasswordExpiresAt bunx.Time
	PasswordAskedAt   bunx.Time
	LoginAttempts     int
	LockedAt          bunx.Time
	MFA               bool    `bun:"mfa"`
	AIMessage         *string `bun:"ai_message"`
	AIConsent         bool    `bun:"ai_consent"`
	LastViewedFeed    bunx.Time
	AvatarID          *string `bun:"avatar_id"`
	AvatarUpdatedAt   bunx.Time
	CreatedAt         bunx.Time
	UpdatedAt         bunx.Time
}

func userRow(tenant string, u principals.User) user {
	may := u.GlobalPermissions
	return user{
		TenantID: tenant, Username: u.Username, Folded: fold.Name(u.Username), Label: fold.Text(u.Label()),
		Search: fold.Search(u.Username, or(u.DisplayName), or(u.GivenName), or(u.MiddleName), or(u.FamilyName), or(u.Email)),
		Domain: u.Domain, DisplayName: u.DisplayName, FamilyName: u.FamilyName, GivenName: u.GivenName, MiddleName: u.MiddleName,
		Email: u.Email, Timezone: u.Timezone, Superuser: u.Superuser, Enabled: u.Enabled,
		DirectoryDisabled: u.DirectoryDisabled, MayAI: may.AI, MayCreateJobs: may.JobCreation, MayViewAllTeams: may.ViewAllTeams, MayViewAllUsers: may.ViewAllUsers,
		MayScript: may.PainlessScriptCreation,
		Source:    u.Source, SourceID: u.SourceID, Data: string(u.Data), UserFields: string(u.UserFields),
		PasswordSetAt: bunx.AtOrNull(u.PasswordSetAt), PasswordExpiresAt: bunx.AtOrNull(u.PasswordExpiresAt),
		PasswordAskedAt: bunx.AtOrNull(u.ForgotPasswordRequestTime),
		LoginAttempts:   u.LoginAttempts, LockedAt: bunx.AtOrNull(u.LockedAt),
		MFA: u.MFA, AIMessage: u.AIMessage, AIConsent: u.AIConsent, LastViewedFeed: bunx.AtOrNull(u.LastViewedFeed),
		AvatarID: u.AvatarID, AvatarUpdatedAt: bunx.AtOrNull(u.AvatarUpdatedAt),
		CreatedAt: bunx.At(u.CreatedAt), UpdatedAt: bunx.At(u.UpdatedAt),
	}
}

func (r user) user() principals.User {
	return principals.User{
		Tenant: r.TenantID, Username: r.Username, Domain: r.Domain,
		DisplayName: r.DisplayName, FamilyName: r.FamilyName, GivenName: r.GivenName, MiddleName: r.MiddleName,
		Email: r.Email, Timezone: r.Timezone, Superuser: r.Superuser, Enabled: r.Enabled,
		DirectoryDisabled: r.DirectoryDisabled,
		GlobalPermissions: principals.GlobalPermissions{
			AI: r.MayAI, JobCreation: r.MayCreateJobs, ViewAllTeams: r.MayViewAllTeams, ViewAllUsers: r.MayViewAllUsers,
			PainlessScriptCreation: r.MayScript,
		},
		Source: r.Source, SourceID: r.SourceID, Data: json.RawMessage(r.Data), UserFields: json.RawMessage(r.UserFields),
		PasswordSetAt: r.PasswordSetAt.Ptr(), PasswordExpiresAt: r.PasswordExpiresAt.Ptr(),
		ForgotPasswordRequestTime: r.PasswordAskedAt.Ptr(),
		LoginAttempts:             r.LoginAttempts, LockedAt: r.LockedAt.Ptr(),
		MFA: r.MFA, AIMessage: r.AIMessage, AIConsent: r.AIConsent, LastViewedFeed: r.LastViewedFeed.Ptr(),
		AvatarID: r.AvatarID, AvatarUpdatedAt: r.AvatarUpdatedAt.Ptr(),
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var userList = bunx.List[user]{
	Key: "folded", Order: "username", Search: "search",
	Sorts: []bunx.Sort[user]{
		{Field: "username", Column: "folded", Value: func(r user) string { return r.Folded }},
		{Field: "displayName", Column: "label", Value: func(r user) string { return r.Label }},
		{Field: "createdAt", Column: "created_at", Value: func(r user) string { return r.CreatedAt.String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r user) string { return r.UpdatedAt.String() }},
	},
}

// User implements principals.Store.
func (s *Store) User(ctx context.Context, tenant, username string) (principals.User, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := one(ctx, c.NewSelect(), tenant, username)
	return r.user(), err
}

func one(ctx context.Context, q *bun.SelectQuery, tenant, username string) (user, error) {
	var r user
	err := q.Model(&r).Where("u.tenant_id = ?", tenant).Where("u.username = ?", username).Scan(ctx)
	return r, bunx.Err(err, "User")
}

// Users implements principals.Store.
func (s *Store) Users(ctx context.Context, tenant string, q paging.Query) (paging.Page[principals.User], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*user)(nil)).Where("u.tenant_id = ?", tenant)
	page, err := bunx.Page(ctx, rows, userList, func(r user) string { return r.Folded }, q)
	return paging.Map(page, user.user), err
}

// UsersNamed implements principals.Store.
func (s *Store) UsersNamed(ctx context.Context, tenant string, folded []string) ([]principals.User, error) {
	if len(folded) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	var rows []user
	err := c.NewSelect().Model(&rows).Where("u.tenant_id = ?", tenant).Where("u.folded IN (?)", bun.List(folded)).Scan(ctx)
	users := make([]principals.User, len(rows))
	for i, r := range rows {
		users[i] = r.user()
	}
	return users, bunx.Err(err, "User")
}

// InsertUser implements principals.Store.
func (s *Store) InsertUser(ctx context.Context, tenant string, u principals.User) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		r := userRow(tenant, u)
		_, err := c.NewInsert().Model(&r).Exec(ctx)
		return bunx.Err(err, "A user with this name")
	})
}

// UpdateUser implements principals.Store.
func (s *Store) UpdateUser(ctx context.Context, tenant, username string, edit func(*principals.User) error) (principals.User, error) {
	var u principals.User
	err := s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		r, err := one(ctx, c.Lock(c.NewSelect()), tenant, username)
		if err != nil {
			return err
		}
		u = r.user()
		was := u
		if err := edit(&u); err != nil {
			return err
		}
		if err := guard.Check(ctx, "user", was); err != nil {
			return err
		}
		u.Tenant, u.Username = tenant, username
		r = userRow(tenant, u)
		_, err = c.NewUpdate().Model(&r).ExcludeColumn("folded").WherePK().Exec(ctx)
		return bunx.Err(err, "User")
	})
	if err != nil {
		return principals.User{}, err
	}
	return u, nil
}

// DeleteUser implements principals.Store.
func (s *Store) DeleteUser(ctx context.Context, tenant, username string) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "user") != nil {
			r, err := one(ctx, c.Lock(c.NewSelect()), tenant, username)
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "user", r.user()); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_users WHERE tenant_id = $1 AND username = $2`, tenant, username)
		return bunx.Found(n, err, "User")
	})
}

// OtherSuperusers implements principals.Store.
func (s *Store) OtherSuperusers(ctx context.Context, tenant, username string) (int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var n int
	err := c.One(ctx, "User", `SELECT count(*) FROM tc_users WHERE tenant_id = $1 AND username <> $2 AND superuser AND enabled`,
		[]any{tenant, username}, &n)
	return n, err
}

// MarkFeedViewed implements principals.Store.
func (s *Store) MarkFeedViewed(ctx context.Context, tenant, username string, at time.Time) error {
	return s.write(ctx, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, `UPDATE tc_users SET last_viewed_feed = $1 WHERE tenant_id = $2 AND username = $3`,
			bunx.At(at), tenant, username)
		return bunx.Found(n, bunx.Err(err, "User"), "User")
	})
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
