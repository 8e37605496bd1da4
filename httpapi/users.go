package httpapi

import (
	"context"
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
	"github.com/tenantcontent/tenantcontent/principals"
)

// userRoutes serves users.
type userRoutes struct{ *api }

// routes returns the rows of the route table.
func (a userRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/users",
			Name:    "listUsers",
			Grants:  nothing,
			Query:   searched,
			Summary: "The users",
			Gives:   openapi.OK(openapi.Page[userBody]("inf:user")),
			Fails:   []int{400},
			Handle:  a.listUsers,
		},
		{
			Method:     post,
			Pattern:    "/api/users",
			Name:       "createUser",
			Grants:     profiles,
			Permission: actor.Superuser,
			Writes:     rest.InSlot,
			Summary:    "Add a user",
			Takes:      openapi.Input[newUserInput](),
			Gives:      openapi.Created(openapi.One[userBody]()),
			Fails:      []int{400, 403, 409},
			Handle:     a.createUser,
		},
		{
			Method:  get,
			Pattern: "/api/users/:username",
			Name:    "getUser",
			Grants:  nothing,
			Summary: "One user",
			Gives:   openapi.OK(openapi.One[userBody]()),
			Fails:   []int{404},
			Handle:  a.getUser,
		},
		{
			Method:  put,
			Pattern: "/api/users/:username",
			Name:    "putUser",
			Grants:  profiles,
			Row:     "user",
			Query:   []string{"check"},
			Summary: "Change a user",
			Takes:   openapi.Update[userInput, userBody](),
			Gives:   openapi.OK(openapi.One[userBody]()),
			Fails:   []int{400, 403, 404, 409},
			Handle:  a.putUser,
		},
		{
			Method:     del,
			Pattern:    "/api/users/:username",
			Name:       "deleteUser",
			Grants:     profiles,
			Row:        "user",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Options:    deletePrincipalInput{},
			Summary:    "Remove a user",
			Gives:      openapi.OK(openapi.None()),
			Fails:      []int{400, 403, 404, 409},
			Handle:     a.deleteUser,
		},
		{
			Method:  put,
			Pattern: "/api/users/:username/password",
			Name:    "putPassword",
			Grants:  credentials,
			Query:   []string{"revokeTokens"},
			Summary: "Change a password",
			Takes:   openapi.Input[passwordInput](),
			Gives:   openapi.OK(openapi.One[changedPasswordBody]()),
			Fails:   []int{400, 403, 404},
			Handle:  a.putPassword,
		},
		{
			Method:     put,
			Pattern:    "/api/users/:username/superuser",
			Name:       "putSuperuser",
			Grants:     rights,
			Row:        "user",
			Permission: actor.Superuser,
			Writes:     rest.InTx,
			Summary:    "Make or unmake a superuser",
			Takes:      openapi.Input[superuserInput](),
			Gives:      openapi.OK(openapi.One[userBody]()),
			Fails:      []int{400, 403, 404, 409},
			Handle:     a.putSuperuser,
		},
		{
			Method:  put,
			Pattern: "/api/users/:username/viewed-feed",
			Name:    "putViewedFeed",
			Grants:  profiles,
			Writes:  rest.ByService,
			Summary: "Note that the user has seen the feed",
			Takes:   openapi.None(),
			Gives:   openapi.OK(openapi.One[userBody]()),
			Fails:   []int{403},
			Handle:  a.putViewedFeed,
		},
	}
}

// userBody is a User as the API writes it.
type userBody struct {
	Tenant                    string                `json:"tenant"`
	Domain                    string                `json:"domain"`
	Username                  string                `json:"username"`
	DisplayName               *string               `json:"displayName"`
	FamilyName                *string               `json:"familyName"`
	GivenName                 *string               `json:"givenName"`
	MiddleName                *string               `json:"middleName"`
	Email                     *string               `json:"email"`
	Data                      json.RawMessage       `json:"data"`
	Superuser                 bool                  `json:"superuser"`
	Timezone                  *string               `json:"timezone"`
	Enabled                   bool                  `json:"enabled"`
	Source                    *string               `json:"source"`
	SourceID                  *string               `json:"sourceId"`
	LastViewedFeed            *hal.Time             `json:"lastViewedFeed"`
	GlobalPermissions         globalPermissionsBody `json:"globalPermissions"`
	UserFields                json.RawMessage       `json:"userFields"`
	Locked                    bool                  `json:"locked"`
	LockedAt                  *hal.Time             `json:"lockedAt"`
	LoginAttempts             int                   `json:"loginAttempts"`
	PasswordSetAt             *hal.Time             `json:"passwordSetAt"`
	PasswordExpiresAt         *hal.Time             `json:"passwordExpiresAt"`
	ForgotPasswordRequestTime *hal.Time             `json:"forgotPasswordRequestTime"`
	MFA                       bool                  `json:"mfa"`
	AIMessage                 *string               `json:"aiMessage"`
	AIConsent                 bool                  `json:"aiConsent"`
	HasSharedDatasources      bool                  `json:"hasSharedDatasources"`
	CreatedAt                 hal.Time              `json:"createdAt"`
	UpdatedAt                 hal.Time              `json:"updatedAt"`
	avatarBody
	ManagesPassword bool                `json:"managesPassword"`
	Permissions     userPermissionsBody `json:"permissions"`
}

// Relations implements openapi.Related.
func (userBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"avatar-upload", "feed", "inf:users", "memberships", "password", "superuser", "viewed-feed",
		},
	}
}

type globalPermissionsBody struct {
	AI                     bool `json:"ai"`
	JobCreation            bool `json:"jobCreation"`
	ViewAllTeams           bool `json:"viewAllTeams"`
	ViewAllUsers           bool `json:"viewAllUsers"`
	PainlessScriptCreation bool `json:"painlessScriptCreation"`
}

type userPermissionsBody struct {
	ChangeDomain         bool `json:"changeDomain"`
	ChangeProfile        bool `json:"changeProfile"`
	ChangePassword       bool `json:"changePassword"`
	Delete               bool `json:"delete"`
	Edit                 bool `json:"edit"`
	Reassign             bool `json:"reassign"`
	Superuser            bool `json:"superuser"`
	Enable               bool `json:"enable"`
	ChangeTheme          bool `json:"changeTheme"`
	Lock                 bool `json:"lock"`
	SetGlobalPermissions bool `json:"setGlobalPermissions"`
	ManageLogin          bool `json:"manageLogin"`
}

// user encodes a user as who, the caller, may see it.
func (a userRoutes) user(who actor.Actor, u principals.User) hal.Resource {
	may := principals.UserPermissionsOf(who, u)
	links := a.userLinks(who, u.Username, may)
	return hal.Resource{Links: links, Row: u, Value: userBody{
		Tenant: u.Tenant, Domain: u.Domain, Username: u.Username, DisplayName: u.DisplayName, FamilyName: u.FamilyName,
		GivenName: u.GivenName, MiddleName: u.MiddleName, Email: u.Email, Data: u.Data, Superuser: u.Superuser,
		Timezone: u.Timezone, Enabled: u.Enabled, Source: u.Source, SourceID: u.SourceID,
		LastViewedFeed: hal.OrNull(u.LastViewedFeed), GlobalPermissions: globalPermissionsBody(u.GlobalPermissions),
		UserFields: u.UserFields, Locked: u.Locked, LockedAt: hal.OrNull(u.LockedAt), LoginAttempts: u.LoginAttempts,
		PasswordSetAt: hal.OrNull(u.PasswordSetAt), PasswordExpiresAt: hal.OrNull(u.PasswordExpiresAt),
		ForgotPasswordRequestTime: hal.OrNull(u.ForgotPasswordRequestTime), MFA: u.MFA, AIMessage: u.AIMessage,
		AIConsent: u.AIConsent, HasSharedDatasources: u.HasSharedDatasources(),
		CreatedAt: hal.Time(u.CreatedAt), UpdatedAt: hal.Time(u.UpdatedAt),
		avatarBody: a.userAvatar(u), ManagesPassword: u.ManagesPassword(),
		Permissions: userPermissionsBody(may),
	}}
}

// userLinks returns the links of a user for who, the caller, who may do what may says.
func (a userRoutes) userLinks(who actor.Actor, username string, may principals.UserPermissions) hal.Links {
	own := who.User == username || who.Superuser
	links := hal.Self(a.href("users", username)).With("inf:users", a.href("users"))
	for _, l := range []struct {
		rel, last string
		usable    bool
	}{
		{"memberships", "memberships", true},
		{"feed", "feed", own}, {"viewed-feed", "viewed-feed", own && !who.ReadOnly},
		{"avatar-upload", "avatar", own && !who.ReadOnly},
		{"password", "password", may.ChangePassword && !who.ReadOnly},
		{"superuser", "superuser", who.Can(actor.Superuser)},
	} {
		if l.usable {
			links.With(l.rel, a.href("users", username, l.last))
		}
	}
	return links
}

// userInput is the body of a write to a user. A field that is left out stays as it is.
type userInput struct {
	Domain            rest.Field[string]             `json:"domain"`
	DisplayName       rest.Field[string]             `json:"displayName"`
	FamilyName        rest.Field[string]             `json:"familyName"`
	GivenName         rest.Field[string]             `json:"givenName"`
	MiddleName        rest.Field[string]             `json:"middleName"`
	Email             rest.Field[string]             `json:"email"`
	Timezone          rest.Field[string]             `json:"timezone"`
	Data              rest.Field[json.RawMessage]    `json:"data"`
	UserFields        rest.Field[json.RawMessage]    `json:"userFields"`
	Superuser         *bool                          `json:"superuser"`
	Enabled           *bool                          `json:"enabled"`
	Locked            *bool                          `json:"locked"`
	AIConsent         *bool                          `json:"aiConsent"`
	Source            rest.Field[string]             `json:"source"`
	SourceID          rest.Field[string]             `json:"sourceId"`
	PasswordExpiresAt rest.Field[jsonfill.Timestamp] `json:"passwordExpiresAt"`
	GlobalPermissions globalPermissionsInput         `json:"globalPermissions"`
}

type globalPermissionsInput struct {
	AI                     *bool `json:"ai"`
	JobCreation            *bool `json:"jobCreation"`
	ViewAllTeams           *bool `json:"viewAllTeams"`
	ViewAllUsers           *bool `json:"viewAllUsers"`
	PainlessScriptCreation *bool `json:"painlessScriptCreation"`
}

func (in userInput) apply(u *principals.User) {
	in.Domain.Apply(&u.Domain)
	in.DisplayName.ApplyOrNull(&u.DisplayName)
	in.FamilyName.ApplyOrNull(&u.FamilyName)
	in.GivenName.ApplyOrNull(&u.GivenName)
	in.MiddleName.ApplyOrNull(&u.MiddleName)
	in.Email.ApplyOrNull(&u.Email)
	in.Timezone.ApplyOrNull(&u.Timezone)
	in.Data.Apply(&u.Data)
	in.UserFields.Apply(&u.UserFields)
	in.Source.ApplyOrNull(&u.Source)
	in.SourceID.ApplyOrNull(&u.SourceID)
	if in.PasswordExpiresAt.Set {
		u.PasswordExpiresAt = nil
		if t := in.PasswordExpiresAt.Value; t != nil {
			u.PasswordExpiresAt = &t.Time
		}
	}
	g := &u.GlobalPermissions
	for _, flag := range []struct {
		given *bool
		dst   *bool
	}{
		{in.Superuser, &u.Superuser}, {in.Enabled, &u.Enabled}, {in.Locked, &u.Locked}, {in.AIConsent, &u.AIConsent},
		{in.GlobalPermissions.AI, &g.AI}, {in.GlobalPermissions.JobCreation, &g.JobCreation},
		{in.GlobalPermissions.ViewAllTeams, &g.ViewAllTeams}, {in.GlobalPermissions.ViewAllUsers, &g.ViewAllUsers},
		{in.GlobalPermissions.PainlessScriptCreation, &g.PainlessScriptCreation},
	} {
		if flag.given != nil {
			*flag.dst = *flag.given
		}
	}
	if in.Enabled != nil { // by a superuser, and no longer for a directory to decide
		u.DirectoryDisabled = false
	}
}

// listUsers serves GET /api/users: 200 and a page of users, 20 unless limit says otherwise, ordered
// by username unless sort says otherwise (username, displayName, createdAt, updatedAt); q searches
// names and email.
func (a userRoutes) listUsers(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(20)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Principals.Users(r.Context(), q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:user", nil, func(u principals.User) hal.Resource {
		return a.user(r.Who, u)
	}))
}

// newUserInput is a new user.
type newUserInput struct {
	Username string             `json:"username"`
	Password rest.Field[string] `json:"password"`
	userInput
}

// createUser serves POST /api/users: 201 and the user; 409 for a taken name. A user without a
// password, or with null for it, cannot log in with one.
func (a userRoutes) createUser(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[newUserInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	u := principals.User{Username: in.Username, Enabled: true}
	in.apply(&u)
	password := ""
	if in.Password.Value != nil {
		if password = *in.Password.Value; password == "" {
			return rest.Reply{}, errs.New(errs.Invalid, "password must have 8 to 256 characters")
		}
	}
	leave, err := r.Slot()
	if err != nil {
		return rest.Reply{}, err
	}
	defer leave()
	u, err = a.Principals.CreateUser(r.Context(), u, password)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Created(a.href("users", u.Username), a.user(r.Who, u))
}

// getUser serves GET /api/users/{username}: 200 and the user; 404.
func (a userRoutes) getUser(r *rest.Request) (rest.Reply, error) {
	return a.userReply(r)(a.Principals.User(r.Context(), r.Param("username")))
}

// userReply replies with the result of a service: 200 and the user.
func (a userRoutes) userReply(r *rest.Request) func(principals.User, error) (rest.Reply, error) {
	return func(u principals.User, err error) (rest.Reply, error) {
		if err != nil {
			return rest.Reply{}, err
		}
		return rest.OK(a.user(r.Who, u))
	}
}

// putUser serves PUT /api/users/{username}: 200 and the changed user; what the body leaves out
// stays. Users may change their own profile, superusers everything. A move to a domain whose
// directory does not know the user is 409, and 502 while the directory is away: ?check=false moves
// all the same, and does not ask.
func (a userRoutes) putUser(r *rest.Request) (rest.Reply, error) {
	in, err := rest.DecodeUpdate[userInput](r, userBody{avatarBody: avatarBody{AvatarURL: "of one with a picture"}})
	if err != nil {
		return rest.Reply{}, err
	}
	check, err := r.Flag("check", true)
	if err != nil {
		return rest.Reply{}, err
	}
	if to := in.Domain.Value; check && to != nil { // before the transaction, which must not wait for a directory
		move := principals.Move{Username: r.Param("username"), Domain: *to}
		in.SourceID.Apply(&move.SourceID)
		if err := a.Principals.CheckMove(r.Context(), move); err != nil {
			return rest.Reply{}, err
		}
	}
	return r.InTx(func() (rest.Reply, error) {
		if in.Locked != nil && !*in.Locked && r.Who.Superuser { // also when only logins from some networks are locked
			if err := a.Principals.Unlock(r.Context(), r.Param("username")); err != nil {
				return rest.Reply{}, err
			}
		}
		return a.editUser(r, in.apply)
	})
}

func (a userRoutes) editUser(r *rest.Request, edit func(*principals.User)) (rest.Reply, error) {
	return a.userReply(r)(a.Principals.UpdateUser(r.Context(), r.Param("username"), func(u *principals.User) error {
		edit(u)
		return nil
	}))
}

// superuserInput says whether a user is a superuser.
type superuserInput struct {
	Superuser *bool `json:"superuser"`
}

// putSuperuser serves PUT /api/users/{username}/superuser {superuser}: 200 and the user; 409 for
// the last one.
func (a userRoutes) putSuperuser(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[superuserInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if in.Superuser == nil {
		return rest.Reply{}, errs.New(errs.Invalid, "superuser is required")
	}
	return a.editUser(r, func(u *principals.User) { u.Superuser = *in.Superuser })
}

// putViewedFeed serves PUT /api/users/{username}/viewed-feed: 200 and the user, whose
// lastViewedFeed is now.
func (a userRoutes) putViewedFeed(r *rest.Request) (rest.Reply, error) {
	if err := r.NoBody(nil); err != nil {
		return rest.Reply{}, err
	}
	return a.userReply(r)(a.Principals.MarkFeedViewed(r.Context(), r.Param("username")))
}

// deleteUser serves DELETE /api/users/{username}: 200; 409 when the user owns content and no
// reassignTo says who gets it, or is the last superuser.
func (a userRoutes) deleteUser(r *rest.Request) (rest.Reply, error) {
	return principalRoutes(a).deletePrincipal(r, r.Param("username"), a.Principals.DeleteUser)
}

// passwordInput is a new password.
type passwordInput struct {
	Password        string  `json:"password"`
	CurrentPassword *string `json:"currentPassword"`
	Domain          *string `json:"domain"`
}

// changedPasswordBody is what a change of a password has done.
type changedPasswordBody struct {
	Revoked int `json:"revokedTokens"`
	Live    int `json:"liveTokens"`
}

// putPassword serves PUT /api/users/{username}/password {password, currentPassword?, domain?}: 200
// {revokedTokens, liveTokens}, and the user's sessions end. The current password is needed for
// one's own: 400 without it, 403 for a wrong one. API tokens live on, but with ?revokeTokens=true.
// With the domain local, a superuser moves a user of another domain there.
func (a userRoutes) putPassword(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[passwordInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	current := ""
	if in.CurrentPassword != nil {
		current = *in.CurrentPassword
	}
	revoke, err := r.Flag("revokeTokens", false)
	if err != nil {
		return rest.Reply{}, err
	}
	var said changedPasswordBody
	username := r.Param("username")
	set := func(also func(context.Context) error) error {
		return a.Principals.SetPassword(r.Context(), username, principals.PasswordChange{
			Current: current, New: in.Password,
		}, also)
	}
	if in.Domain != nil {
		if *in.Domain != principals.Local {
			return rest.Reply{}, errs.New(
				errs.Invalid, "domain must be local, or left out: users of other domains have no password here",
			)
		}
		set = func(also func(context.Context) error) error {
			return a.Principals.MoveToLocal(r.Context(), username, in.Password, also)
		}
	}
	err = set(func(ctx context.Context) (err error) {
		if revoke {
			said.Revoked, err = a.Sessions.RevokeTokens(ctx, username)
		} else {
			said.Live, err = a.Sessions.LiveTokens(ctx, username)
		}
		return err
	})
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(said)
}
