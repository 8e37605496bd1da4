package bunstore

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// user is a row of tc_users.
type user struct {
	principals.User
	folded, label string // as they are stored
}

func (r user) user() principals.User { return r.User }

func userKey(r user) string { return r.folded }

func users(rows []user) []principals.User {
	all := make([]principals.User, len(rows))
	for i, r := range rows {
		all[i] = r.User
	}
	return all
}

// userTable has the columns of a user except for those of the login, which only EditLogin writes
// and only Login reads. An import does not overwrite columns with Keep.
var userTable = bunx.NewTable("tc_users", "u", []bunx.Column[user]{
	{Name: "tenant_id", Key: true, Field: func(u *user) any { return &u.Tenant }},
	{Name: "username", Key: true, Field: func(u *user) any { return &u.Username }},
	{Name: "folded", Once: true, Field: func(u *user) any { return &u.folded }, Value: foldedOf},
	{Name: "label", Field: func(u *user) any { return &u.label }, Value: labelOf},
	{Name: "search", Value: searchOf},
	{Name: "domain", Keep: true, Field: func(u *user) any { return &u.Domain }},
	{Name: "display_name", Field: func(u *user) any { return &u.DisplayName }},
	{Name: "family_name", Field: func(u *user) any { return &u.FamilyName }},
	{Name: "given_name", Field: func(u *user) any { return &u.GivenName }},
	{Name: "middle_name", Field: func(u *user) any { return &u.MiddleName }},
	{Name: "email", Field: func(u *user) any { return &u.Email }},
	{Name: "email_typed", Field: func(u *user) any { return &u.EmailTyped }},
	{Name: "email_key", Value: emailKeyOf},
	{Name: "timezone", Field: func(u *user) any { return &u.Timezone }},
	{Name: "superuser", Keep: true, Field: func(u *user) any { return &u.Superuser }},
	{Name: "enabled", Keep: true, Field: func(u *user) any { return &u.Enabled }},
	{Name: "directory_disabled", Keep: true, Field: func(u *user) any { return &u.DirectoryDisabled }},
	{Name: "directory_locked", Keep: true, Field: func(u *user) any { return &u.DirectoryLocked }},
	{Name: "may_ai", Keep: true, Field: func(u *user) any { return &u.GlobalPermissions.AI }},
	{Name: "may_create_jobs", Keep: true, Field: func(u *user) any { return &u.GlobalPermissions.JobCreation }},
	{Name: "may_view_all_teams", Keep: true, Field: func(u *user) any { return &u.GlobalPermissions.ViewAllTeams }},
	{Name: "may_view_all_users", Keep: true, Field: func(u *user) any { return &u.GlobalPermissions.ViewAllUsers }},
	{Name: "may_script", Keep: true, Field: func(u *user) any { return &u.GlobalPermissions.PainlessScriptCreation }},
	{Name: "source", Keep: true, Field: func(u *user) any { return &u.Source }},
	{Name: "source_id", Keep: true, Field: func(u *user) any { return &u.SourceID }},
	{Name: "data", Field: func(u *user) any { return bunx.JSON(&u.Data) }},
	{Name: "user_fields", Field: func(u *user) any { return bunx.JSON(&u.UserFields) }},
	{Name: "password_set_at", Keep: true, Field: func(u *user) any { return bunx.TimeOrNull(&u.PasswordSetAt) }},
	{Name: "password_expires_at", Keep: true, Field: func(u *user) any {
		return bunx.TimeOrNull(&u.PasswordExpiresAt)
	}},
	{Name: "password_asked_at", Keep: true, Field: func(u *user) any {
		return bunx.TimeOrNull(&u.ForgotPasswordRequestTime)
	}},
	{Name: "login_attempts", Keep: true, Field: func(u *user) any { return &u.LoginAttempts }},
	{Name: "locked_at", Keep: true, Field: func(u *user) any { return bunx.TimeOrNull(&u.LockedAt) }},
	{Name: "mfa", Keep: true, Field: func(u *user) any { return &u.MFA }},
	{Name: "ai_message", Keep: true, Field: func(u *user) any { return &u.AIMessage }},
	{Name: "ai_consent", Keep: true, Field: func(u *user) any { return &u.AIConsent }},
	{Name: "last_viewed_feed", Keep: true, Field: func(u *user) any { return bunx.TimeOrNull(&u.LastViewedFeed) }},
	{Name: "avatar_id", Keep: true, Field: func(u *user) any { return &u.AvatarID }},
	{Name: "avatar_updated_at", Keep: true, Field: func(u *user) any { return bunx.TimeOrNull(&u.AvatarUpdatedAt) }},
	{Name: "created_at", Keep: true, Field: func(u *user) any { return bunx.TimeOf(&u.CreatedAt) }},
	{Name: "updated_at", Field: func(u *user) any { return bunx.TimeOf(&u.UpdatedAt) }},
})

func foldedOf(u *user) any { return fold.Name(u.Username) }

func labelOf(u *user) any { return fold.Text(u.Label()) }

func searchOf(u *user) any {
	return fold.Search(u.Username, or(u.DisplayName), or(u.GivenName), or(u.MiddleName), or(u.FamilyName), or(u.Email))
}

// emailKeyOf returns the key by which UsersWithEmail finds a user, or nil.
func emailKeyOf(u *user) any {
	if u.Email == nil || u.EmailTyped {
		return nil
	}
	return lowerASCII(*u.Email)
}

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var userList = bunx.List[user]{
	Table: userTable, Key: "folded", Order: "username", Search: "search",
	Sorts: []bunx.Sort[user]{
		{Field: "username", Column: "folded", Value: func(r user) string { return r.folded }},
		{Field: "displayName", Column: "label", Value: func(r user) string { return r.label }},
		{Field: "createdAt", Column: "created_at", Value: func(r user) string { return bunx.At(r.CreatedAt).String() }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r user) string { return bunx.At(r.UpdatedAt).String() }},
	},
}

// User implements principals.Store.
func (s *Store) User(ctx context.Context, tenant, username string) (principals.User, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	r, err := one(ctx, c, tenant, username, "")
	return r.User, err
}

var selectUser = userTable.Select(`WHERE tenant_id = $1 AND username = $2`)

func one(ctx context.Context, c bunx.Conn, tenant, username, lock string) (user, error) {
	r, err := userTable.Scan(c.Row(ctx, selectUser+lock, tenant, username))
	return r, bunx.Err(err, "User")
}

// Users implements principals.Store.
func (s *Store) Users(ctx context.Context, tenant string, q paging.Query) (paging.Page[principals.User], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	all := bunx.Part{
		Where: "u.tenant_id = $1",
		Args:  []any{tenant},
		Total: bunx.Total("users", bunx.Whole),
		Index: &bunx.Index{List: "users"},
	}
	page, err := bunx.Page(ctx, c, userList, all, userKey, q)
	return paging.Map(page, user.user), err
}

// UsersNamed implements principals.Store.
func (s *Store) UsersNamed(ctx context.Context, tenant string, folded []string) ([]principals.User, error) {
	if len(folded) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := userTable.All(
		ctx, userTable.Rows(c).Where("u.tenant_id = ?", tenant).Where("u.folded IN (?)", bun.List(folded)),
	)
	return users(rows), bunx.Err(err, "User")
}

// InsertUser implements principals.Store.
func (s *Store) InsertUser(ctx context.Context, tenant string, u principals.User) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		u.Tenant = tenant
		_, err := userTable.Insert(ctx, c, "", user{User: u})
		return bunx.Err(err, "A user with this name")
	})
}

// UpdateUser implements principals.Store.
func (s *Store) UpdateUser(
	ctx context.Context, tenant, username string, edit func(*principals.User) error,
) (principals.User, error) {
	var u principals.User
	err := s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		r, err := one(ctx, c, tenant, username, c.ForUpdate())
		if err != nil {
			return err
		}
		u = r.User
		was := u
		if err := edit(&u); err != nil {
			return err
		}
		if err := guard.Check(ctx, "user", was); err != nil {
			return err
		}
		u.Tenant, u.Username = tenant, username
		_, err = userTable.Update(ctx, c, &user{User: u})
		if err == nil && u.Domain != was.Domain { // the id is that of the provider of the previous domain
			_, err = c.Exec(ctx, `DELETE FROM tc_scim_users WHERE tenant_id = $1 AND username = $2`, tenant, username)
		}
		return bunx.Err(err, "User")
	})
	if err != nil {
		return principals.User{}, err
	}
	return u, nil
}

// DeleteUser implements principals.Store.
func (s *Store) DeleteUser(ctx context.Context, tenant, username string) (account string, err error) {
	err = s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if guard.Of(ctx, "user") != nil {
			r, err := one(ctx, c, tenant, username, c.ForUpdate())
			if err != nil {
				return err
			}
			if err := guard.Check(ctx, "user", r.User); err != nil {
				return err
			}
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_users WHERE tenant_id = $1 AND username = $2`, tenant, username)
		if err := bunx.Found(n, err, "User"); err != nil {
			return err
		}
		closed, err := c.CloseAccounts(ctx, tenant, []string{username})
		if err == nil {
			account = closed[0]
		}
		return err
	})
	return account, err
}

// OtherSuperusers implements principals.Store.
func (s *Store) OtherSuperusers(ctx context.Context, tenant, username string) (int, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var n int
	err := c.One(ctx, "User", `SELECT count(*) FROM tc_users`+c.IndexedBy(
		"tc_users", "superusers",
	)+` WHERE tenant_id = $1 AND username <> $2 AND superuser AND enabled`,
		[]any{tenant, username}, &n)
	return n, err
}

// EnabledSuperusers implements principals.Store.
func (s *Store) EnabledSuperusers(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx,
		`SELECT username FROM tc_users`+c.IndexedBy(
			"tc_users", "superusers",
		)+` WHERE tenant_id = $1 AND superuser AND enabled ORDER BY folded`,
		tenant,
	)
	names, err := bunx.Scan(rows, err, bunx.Text)
	return names, bunx.Err(err, "User")
}

// MarkFeedViewed implements principals.Store.
func (s *Store) MarkFeedViewed(ctx context.Context, tenant, username string, at time.Time) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
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
