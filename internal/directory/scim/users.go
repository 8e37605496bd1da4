package scim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/principals"
)

// maxExternalID is the most characters of an externalId.
const maxExternalID = 255

func errNoUser() error { return errs.New(errs.NotFound, "User not found.") }

// userOf returns a person in the form of the protocol.
func userOf(p Person) User {
	u := User{
		ID: p.ID, ExternalID: p.ExternalID, UserName: p.Username,
		DisplayName: p.DisplayName, GivenName: p.GivenName, MiddleName: p.MiddleName,
		FamilyName: p.FamilyName, Email: p.Email, Timezone: p.Timezone,
		Active: p.Enabled, Created: p.CreatedAt, Modified: p.UpdatedAt,
	}
	if p.ChangedAt.After(u.Modified) {
		u.Modified = p.ChangedAt
	}
	return u
}

// User returns a user of the client's domain by id, with the groups if groups is set. Errors:
// errs.NotFound.
func (s *Service) User(ctx context.Context, c Client, id string, groups bool) (User, error) {
	p, err := s.person(ctx, c, id)
	if err != nil {
		return User{}, err
	}
	return s.withGroups(ctx, c, userOf(p), groups)
}

func (s *Service) withGroups(ctx context.Context, c Client, u User, groups bool) (User, error) {
	all := []User{u}
	if groups {
		if err := s.addGroups(ctx, c, all); err != nil {
			return User{}, err
		}
	}
	return all[0], nil
}

// addGroups sets the groups of users.
func (s *Service) addGroups(ctx context.Context, c Client, users []User) error {
	names := make([]string, len(users))
	place := make(map[string]int, len(users))
	for i, u := range users {
		names[i], place[u.UserName] = u.UserName, i
		users[i].Groups = []Ref{}
	}
	if len(users) == 0 {
		return nil
	}
	all, err := s.o.Store.UserGroups(ctx, c.Tenant, c.Domain, names)
	for _, m := range all {
		if i, ok := place[m.Username]; ok {
			users[i].Groups = append(users[i].Groups, Ref{m.TeamID, m.TeamName})
		}
	}
	return err
}

// person returns the user with an id, unless it is gone.
func (s *Service) person(ctx context.Context, c Client, id string) (Person, error) {
	key, ok := uuids.Parse(id)
	if !ok {
		return Person{}, errNoUser()
	}
	all, err := s.o.Store.People(ctx, c.Tenant, c.Domain, ByID, key)
	if err == nil && (len(all) == 0 || all[0].Gone) {
		err = errNoUser()
	}
	if err != nil {
		return Person{}, err
	}
	return all[0], nil
}

// CreateUser adds a user to the client's domain, without a password and rights. A user of the
// domain that the provider has deleted is restored, with id and content. Errors: errs.Invalid with
// a scimType; errs.Conflict for a userName that another user has.
func (s *Service) CreateUser(ctx context.Context, c Client, change UserChange) (u User, err error) {
	u = User{Active: true}
	if err := change(&u); err != nil {
		return User{}, err
	}
	if err := s.accept(ctx, c, &u, User{}); err != nil {
		return User{}, err
	}
	err = s.writing(ctx, c, func(ctx context.Context) error {
		folded := fold.Name(u.UserName)
		holders, err := s.o.Store.Holders(ctx, c.Tenant, []string{folded})
		if err != nil {
			return err
		}
		holder, held := holders[folded]
		switch {
		case !held:
			return s.insert(ctx, c, &u)
		case holder.Domain != c.Domain:
			return taken("userName %s is that of a user of another domain of this service", shown(u.UserName))
		}
		return s.revive(ctx, c, holder.Username, &u)
	})
	return u, err
}

// insert adds a new user.
func (s *Service) insert(ctx context.Context, c Client, u *User) error {
	at := s.clock.Stamp()
	u.ID, u.Created, u.Modified, u.Groups = s.clock.NewID(), at, at, []Ref{}
	row := principals.DirectoryUser{Username: u.UserName, Enabled: true}
	if !u.Active {
		row.Disable()
	}
	u.profile(&row)
	if err := s.o.Store.AddDirectoryUsers(ctx, c.Tenant, c.Domain, []principals.DirectoryUser{row}, at); err != nil {
		return err
	}
	return s.o.Store.SetIdentity(ctx, c.Tenant, u.UserName, Identity{ID: u.ID, ExternalID: u.ExternalID, ChangedAt: at})
}

// revive restores a user of the domain that is gone.
func (s *Service) revive(ctx context.Context, c Client, username string, u *User) error {
	all, err := s.o.Store.People(ctx, c.Tenant, c.Domain, ByName, fold.Name(username))
	if err != nil {
		return err
	}
	if len(all) != 1 || !all[0].Gone {
		return taken("userName %s is that of a user who is there already", shown(u.UserName))
	}
	now := *u
	*u, err = s.update(ctx, c, all[0], now)
	return err
}

// profile copies a user into a row.
func (u User) profile(row *principals.DirectoryUser) {
	row.Source = Source
	row.DisplayName, row.GivenName, row.MiddleName, row.FamilyName =
		u.DisplayName, u.GivenName, u.MiddleName, u.FamilyName
	row.Email, row.Timezone = u.Email, u.Timezone
}

// accept checks and trims the values of a client. was is the user before. A timezone that is not an
// IANA name is left out, with a warning in the log: providers send what people have typed, and that
// must not prevent a user. It returns errs.Invalid naming the attribute.
func (s *Service) accept(ctx context.Context, c Client, u *User, was User) error {
	if was.ID == "" || u.UserName != was.UserName {
		if err := principals.ValidUsername(u.UserName); err != nil {
			return invalid(InvalidValue, "%s", strings.Replace(errs.MessageOf(err), "username", "userName", 1))
		}
	}
	if !escapes.StorableWithin(u.ExternalID, maxExternalID) {
		return invalid(InvalidValue, "externalId must have at most %d characters", maxExternalID)
	}
	for _, t := range [...]struct {
		name  string
		text  *string
		most  int
		valid func(string) error
	}{
		{"displayName", &u.DisplayName, profile.MaxName, nil}, {"name.givenName", &u.GivenName, profile.MaxName, nil},
		{"name.middleName", &u.MiddleName, profile.MaxName, nil},
		{"name.familyName", &u.FamilyName, profile.MaxName, nil},
		{"emails.value", &u.Email, profile.MaxEmail, profile.CheckEmail},
	} {
		text := t.text
		err := profile.Clean([]profile.Text{{Name: t.name, Value: &text, Max: t.most}})
		if err == nil && text != nil && t.valid != nil {
			err = t.valid(*text)
		}
		switch {
		case err != nil:
			return invalid(InvalidValue, "%s: %s", t.name, errs.MessageOf(err))
		case text == nil:
			*t.text = ""
		default:
			*t.text = *text
		}
	}
	if u.Timezone = strings.TrimSpace(u.Timezone); u.Timezone != "" && profile.CheckTimezone(u.Timezone) != nil {
		s.o.Log.WarnContext(ctx,
			"a timezone of the provider is not an IANA name such as Europe/Berlin, and is left out", "tenant",
			c.Tenant, "domain", c.Domain,
			"username", shown(u.UserName), "timezone", shown(u.Timezone))
		u.Timezone = was.Timezone
	}
	return nil
}

// UpdateUser changes a user of the client's domain, and returns it with the groups if groups is
// set. Errors: errs.NotFound; errs.Stale; errs.Invalid with a scimType; errs.Conflict for a
// userName that another user has, and if the last enabled superuser would be disabled.
func (s *Service) UpdateUser(
	ctx context.Context, c Client, id string, on Condition, change UserChange, groups bool,
) (u User, err error) {
	err = s.writing(ctx, c, func(ctx context.Context) error {
		p, err := s.person(ctx, c, id)
		if err != nil {
			return err
		}
		was := userOf(p)
		if err := on.check(was.Version()); err != nil {
			return err
		}
		u = was
		if err := change(&u); err != nil {
			return err
		}
		if err := s.accept(ctx, c, &u, was); err != nil {
			return err
		}
		u, err = s.update(ctx, c, p, u)
		return err
	})
	if err != nil {
		return User{}, err
	}
	return s.withGroups(ctx, c, u, groups)
}

// update writes the changes of a user. It writes nothing if the user does not change.
func (s *Service) update(ctx context.Context, c Client, p Person, u User) (User, error) {
	at := s.clock.Stamp()
	if err := s.rename(ctx, c, p.Username, u.UserName, at); err != nil {
		return User{}, err
	}
	row := p.DirectoryUser
	row.Username = u.UserName
	u.profile(&row)
	if err := s.activate(ctx, c, &row, u.Active); err != nil {
		return User{}, err
	}
	was := p.DirectoryUser
	was.Username, was.Source = row.Username, row.Source // becoming a user of SCIM is not a change
	if row != was || p.Source != Source {
		err := s.o.Store.EditDirectoryUsers(ctx, c.Tenant, []string{row.Username}, at,
			func(stored *principals.DirectoryUser) {
				*stored = row
			})
		if err != nil {
			return User{}, err
		}
	}
	if p.Gone || p.ExternalID != u.ExternalID {
		id := Identity{ID: p.ID, ExternalID: u.ExternalID, ChangedAt: at}
		if err := s.o.Store.SetIdentity(ctx, c.Tenant, row.Username, id); err != nil {
			return User{}, err
		}
	}
	now, err := s.person(ctx, c, p.ID)
	return userOf(now), err
}

// rename changes the name of a user to a free one.
func (s *Service) rename(ctx context.Context, c Client, from, to string, at time.Time) error {
	if from == to {
		return nil
	}
	folded := fold.Name(to)
	holders, err := s.o.Store.Holders(ctx, c.Tenant, []string{folded})
	if err != nil {
		return err
	}
	if holder, held := holders[folded]; held && holder.Username != from {
		return taken("userName %s is that of another user", shown(to))
	}
	return s.o.Principals.Rename(ctx, c.Tenant, map[string]string{from: to}, at)
}

// activate sets whether a user may log in, as a scan of a directory does. It does not enable a user
// that a superuser has disabled, and does not disable the last enabled superuser.
func (s *Service) activate(ctx context.Context, c Client, row *principals.DirectoryUser, active bool) error {
	switch {
	case active && !row.Enabled && row.DirectoryDisabled:
		row.Enable()
		s.log(ctx, c, "scim: user enabled", row.Username)
	case !active && row.Lasts():
		if row.Superuser && row.Enabled {
			others, err := s.o.Store.OtherSuperusers(ctx, c.Tenant, row.Username)
			if err != nil {
				return err
			}
			if others == 0 {
				return errs.New(
					errs.Conflict,
					"The last enabled superuser of the tenant cannot be disabled or deleted: make another one first.",
				)
			}
		}
		row.Disable()
		s.log(ctx, c, "scim: user disabled", row.Username)
		return s.o.Principals.Disabled(ctx, c.Tenant, row.Username)
	}
	return nil
}

func (s *Service) log(ctx context.Context, c Client, what, username string) {
	s.o.Log.InfoContext(ctx, what, "tenant", c.Tenant, "domain", c.Domain, "username", username, "token", c.Token)
}

// DeleteUser disables a user of the client's domain and removes it from the domain's groups. The
// user is errs.NotFound from then on. The row is kept, because content must have an owner. Errors:
// errs.NotFound; errs.Stale; errs.Conflict for the last enabled superuser.
func (s *Service) DeleteUser(ctx context.Context, c Client, id string, on Condition) error {
	return s.writing(ctx, c, func(ctx context.Context) error {
		p, err := s.person(ctx, c, id)
		if err != nil {
			return err
		}
		if err := on.check(userOf(p).Version()); err != nil {
			return err
		}
		at, row := s.clock.Stamp(), p.DirectoryUser
		if err := s.activate(ctx, c, &row, false); err != nil {
			return err
		}
		err = s.o.Store.EditDirectoryUsers(ctx, c.Tenant, []string{p.Username}, at,
			func(stored *principals.DirectoryUser) {
				*stored = row
			})
		if err != nil {
			return err
		}
		groups, err := s.o.Store.UserGroups(ctx, c.Tenant, c.Domain, []string{p.Username})
		if err != nil {
			return err
		}
		for _, g := range groups {
			left := []announced.MemberKey{{TeamID: g.TeamID, Username: p.Username}}
			if err := s.o.Store.DeleteMembers(ctx, c.Tenant, left); err != nil {
				return err
			}
			if _, err := s.touch(ctx, c, g.TeamID, nil); err != nil {
				return err
			}
		}
		s.log(ctx, c, "scim: user deleted", p.Username)
		return s.o.Store.SetIdentity(ctx, c.Tenant, p.Username, Identity{ID: p.ID, Gone: true, ChangedAt: at})
	})
}

// identify sets and stores new ids for rows without one. id returns a pointer to the id of a row,
// and its username.
func identify[T any](ctx context.Context, s *Service, c Client, rows []T, id func(*T) (*string, string)) error {
	missing := map[string]string{}
	for i := range rows {
		if id, username := id(&rows[i]); *id == "" {
			missing[username] = s.clock.NewID()
		}
	}
	if len(missing) == 0 {
		return nil
	}
	names := make([]string, 0, len(missing))
	for name := range missing {
		names = append(names, name)
	}
	slices.Sort(names)
	if err := s.o.Store.Identify(ctx, c.Tenant, missing, s.clock.Stamp()); err != nil {
		return err
	}
	ids, err := s.o.Store.Identities(ctx, c.Tenant, names)
	for i := range rows {
		if id, username := id(&rows[i]); *id == "" {
			*id = ids[username]
		}
	}
	return err
}

func personID(p *Person) (*string, string) { return &p.ID, p.Username }

func memberID(m *Member) (*string, string) { return &m.ID, m.Username }
