package principals

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// userTransferer moves users, without passwords, locks, sessions, pictures and consent.
//
// An import changes no rights and locks nobody out: an existing user keeps domain, source,
// password, lock, global permissions and Enabled, and an existing superuser every field, so that
// nobody takes one over by changing the e-mail. New users are no superusers and have no global
// permissions. A name that a user has in another spelling is errs.Conflict. A deploy from another
// tenant brings no users.
func (s *Service) userTransferer() entity.Transferer {
	return transfer.Transferer[User]{
		Kind: KindUser, ID: func(u User) string { return u.Username },
		All: s.store.UserIDs, Some: s.store.SomeUsers, Row: toUserColumns, Read: s.readUser, There: s.named,
		Spare: func(u User) string {
			if u.Superuser {
				return "is a superuser here"
			}
			return ""
		},
		Free: func(u *User) map[string]*json.RawMessage {
			return map[string]*json.RawMessage{"data": &u.Data, "userFields": &u.UserFields}
		},
		Put: s.putUsers, Drop: s.dropUsers, InTx: s.store.InTx,
	}
}

// userColumns are the columns of a user in an archive.
type userColumns struct {
	Domain      string          `json:"domain"`
	DisplayName *string         `json:"displayName"`
	FamilyName  *string         `json:"familyName"`
	GivenName   *string         `json:"givenName"`
	MiddleName  *string         `json:"middleName"`
	Email       *string         `json:"email"`
	EmailTyped  bool            `json:"emailTyped"`
	Timezone    *string         `json:"timezone"`
	Enabled     bool            `json:"enabled"`
	AI          bool            `json:"ai"`
	JobCreation bool            `json:"jobCreation"`
	AllTeams    bool            `json:"viewAllTeams"`
	AllUsers    bool            `json:"viewAllUsers"`
	Script      bool            `json:"painlessScriptCreation"`
	Source      *string         `json:"source"`
	SourceID    *string         `json:"sourceId"`
	Data        json.RawMessage `json:"data"`
	UserFields  json.RawMessage `json:"userFields"`
	CreatedAt   string          `json:"createdAt"`
	UpdatedAt   string          `json:"updatedAt"`
}

func toUserColumns(u User) any {
	may := u.GlobalPermissions
	return userColumns{
		u.Domain, u.DisplayName, u.FamilyName, u.GivenName, u.MiddleName,
		u.Email, u.EmailTyped, u.Timezone, u.Enabled, may.AI, may.JobCreation,
		may.ViewAllTeams, may.ViewAllUsers, may.PainlessScriptCreation, u.Source, u.SourceID, u.Data, u.UserFields,
		transfer.Time(u.CreatedAt), transfer.Time(u.UpdatedAt),
	}
}

// readUser checks a row of another tenant.
func (s *Service) readUser(tenant string, r entity.Row) (User, error) {
	c, now := transfer.Read(r), s.clock.Stamp()
	u := User{
		Tenant: tenant, Username: r.ID,
		Domain: c.Text("domain"), DisplayName: c.TextOrNull("displayName"), FamilyName: c.TextOrNull("familyName"),
		GivenName: c.TextOrNull("givenName"), MiddleName: c.TextOrNull("middleName"), Email: c.TextOrNull("email"),
		Timezone: c.TextOrNull("timezone"), Enabled: c.Flag("enabled", true),
		Source: c.TextOrNull("source"), SourceID: c.TextOrNull("sourceId"),
		Superuser: c.Flag("superuser", false), Data: c.JSON("data"), UserFields: c.JSON("userFields"),
		CreatedAt: c.Time("createdAt", now), UpdatedAt: c.Time("updatedAt", now),
		GlobalPermissions: GlobalPermissions{
			AI:          c.Flag("ai", false),
			JobCreation: c.Flag("jobCreation", false), ViewAllTeams: c.Flag("viewAllTeams", false),
			ViewAllUsers:           c.Flag("viewAllUsers", false),
			PainlessScriptCreation: c.Flag("painlessScriptCreation", false),
		},
	}
	// What an archive of before says nobody knows of who had no directory, as at a migration.
	u.EmailTyped = c.Flag("emailTyped", u.Source == nil) && u.Email != nil
	err := c.Accept(u.acceptRow)
	return u, err
}

// named returns the given users that exist. It returns errs.Conflict if a name is given in two
// spellings, or an existing user has another spelling.
func (s *Service) named(ctx context.Context, tenant string, users []User, _ entity.ImportOptions) ([]User, error) {
	var folded []string
	exact := make(map[string]bool, len(users))
	for _, u := range users {
		folded, exact[u.Username] = append(folded, keys(u.Username)...), true
	}
	slices.Sort(folded)
	there, err := s.store.UsersNamed(ctx, tenant, slices.Compact(folded))
	here := map[string]bool{}
	for _, u := range there {
		here[u.Username] = true
	}
	spelled := map[string]string{} // folded to exact name
	for _, u := range users {
		key := fold.Name(u.Username)
		if other, ok := spelled[key]; ok && !(here[u.Username] && here[other]) { // else both existed before
			return nil, nameTaken(u.Username, other)
		}
		spelled[key] = u.Username
	}
	for _, u := range there {
		if exact[u.Username] {
			continue
		}
		if name := spelled[fold.Name(u.Username)]; name != u.Username {
			return nil, nameTaken(name, u.Username)
		}
	}
	return there, err
}

func nameTaken(name, other string) error {
	return errs.New(errs.Conflict, "user %s: the name belongs to %s.", name, other)
}

// putUsers writes users, and warns of what is left out.
func (s *Service) putUsers(ctx context.Context, b *transfer.Batch[User]) error {
	without, kept, local, supers := 0, 0, 0, 0
	arriving := actions{s: s, tenant: b.Tenant, domains: map[string]string{}}
	for i := range b.Write {
		u := &b.Write[i]
		old, there := b.There[u.Username]
		if !there && !b.OwnArchive() {
			if err := ValidUsername(u.Username); err != nil {
				return transfer.Why(entity.Key{Kind: KindUser, ID: u.Username}, err)
			}
		}
		if !there {
			here, err := arriving.domain(ctx, u.Domain)
			if err != nil {
				return err
			}
			if here != u.Domain {
				u.Domain = here
				local++
			}
		}
		if u.Superuser {
			u.Superuser = false
			supers++
		}
		switch {
		case there && (u.Enabled != old.Enabled || u.GlobalPermissions != old.GlobalPermissions ||
			u.Domain != old.Domain):
			kept++
		case !there && u.GlobalPermissions != GlobalPermissions{}:
			without++
			u.GlobalPermissions = GlobalPermissions{}
		}
	}
	b.Sum(
		"%s came without the global permissions that the archive has: grant them again here.",
		entity.Count{N: without, Of: "user"},
	)
	b.Sum(
		"%s came from a domain that is not here and is of the domain local: its people cannot log in by it.",
		entity.Count{N: local, Of: "user"},
	)
	b.Sum(
		"%s kept domain, global permissions and whether enabled as they are here, where the archive has others.",
		entity.Count{N: kept, Of: "user"},
	)
	b.Sum(
		"%s got no superuser right, which the archive asks for: no import gives it.",
		entity.Count{N: supers, Of: "user"},
	)
	return s.store.PutUsers(ctx, b.Tenant, b.Write)
}

// actions checks the domains of users or teams that are new to a tenant.
type actions struct {
	s       *Service
	tenant  string
	domains map[string]string // of the archive, to the one here
}

// domain returns the domain for a new user or team from a domain: Local if the tenant has no domain
// with that id, as it would otherwise belong to one that is created later.
func (a actions) domain(ctx context.Context, from string) (string, error) {
	if here, asked := a.domains[from]; asked {
		return here, nil
	}
	here := from
	if from != Local && a.s.domains != nil {
		err := a.s.domains.CheckKnown(ctx, a.tenant, from)
		if errs.CodeOf(err) == errs.Invalid {
			here, err = Local, nil
		}
		if err != nil {
			return "", err
		}
	}
	a.domains[from] = here
	return here, nil
}

// dropUsers removes users. Errors: errs.Conflict when the tenant would be left without an enabled
// superuser.
func (s *Service) dropUsers(ctx context.Context, tenant string, usernames []string) (int, error) {
	if err := s.store.LockTenant(ctx, tenant); err != nil {
		return 0, err
	}
	before, err := s.store.OtherSuperusers(ctx, tenant, "")
	if err != nil {
		return 0, err
	}
	if err := s.forgetAll(ctx, tenant, KindUser, usernames...); err != nil {
		return 0, err
	}
	accounts, pictures, err := s.store.DeleteUsers(ctx, tenant, usernames)
	if err == nil {
		err = s.removeRest(ctx, tenant, KindUser, accounts...)
	}
	if err != nil {
		return 0, err
	}
	for _, id := range pictures {
		if err := s.blobs.Delete(ctx, tenant, id); err != nil {
			return 0, err
		}
	}
	after, err := s.store.OtherSuperusers(ctx, tenant, "")
	if err == nil && before > 0 && after == 0 {
		err = errLastSuperuser
	}
	return len(accounts), err
}
