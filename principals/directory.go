package principals

import (
	"context"
	"time"
)

// Identity is a person as an authentication domain reports it. Texts that it does not report are "".
type Identity struct {
	ID          string // never changes and is given to nobody else, such as an entryUUID; 1 to 255 characters
	Username    string // what the person is called here
	DisplayName string
	GivenName   string
	MiddleName  string
	FamilyName  string
	Email       string // never identifies a person
	Timezone    string // IANA name
	Disabled    bool   // may not log in
}

// Group is a group of people, which becomes a team.
type Group struct {
	ID          string   // as Identity.ID
	Name        string   // 1 to 255 characters
	Description string   // "" for none
	Members     []string // ids of people, those of groups in the group too; unknown ones are left out
}

// DirectoryUser has the fields of a user that a directory sets, and those that a scan reads. Texts are "" for none.
type DirectoryUser struct {
	Username                                                        string
	Source, SourceID                                                string
	DisplayName, FamilyName, GivenName, MiddleName, Email, Timezone string
	Superuser                                                       bool // no directory makes or ends one
	Enabled                                                         bool
	DirectoryDisabled                                               bool // see User
}

// Holder is the user who has a name.
type Holder struct{ Username, Domain string }

// MemberKey names a membership: a team and a user in it.
type MemberKey struct{ TeamID, Username string }

// DomainCounts counts the users and teams of a domain.
type DomainCounts struct{ Users, Teams int }

// DirectoryStore is the part of a Store for the users and teams of directories, many at once. Domains are those of the rows:
// an unknown one has no users and teams.
type DirectoryStore interface {
	// DomainUsers calls each with every user of a domain, ordered by username. each must not use the store.
	DomainUsers(ctx context.Context, tenant, domain string, each func(DirectoryUser)) error
	// UserFrom returns the user of a domain with a source id, the first by username of several. It fails with errs.NotFound.
	UserFrom(ctx context.Context, tenant, domain, sourceID string) (User, error)
	// Holders returns the users of any domain that have the given folded names, by folded name.
	Holders(ctx context.Context, tenant string, folded []string) (map[string]Holder, error)
	// AddDirectoryUsers adds users to a domain, without passwords and rights: Superuser is ignored. It fails with
	// errs.Conflict when a name is taken.
	AddDirectoryUsers(ctx context.Context, tenant, domain string, all []DirectoryUser, at time.Time) error
	// EditDirectoryUsers calls edit with each of the given users that exist, in no order, and writes those that it changed with
	// UpdatedAt; no other write to them comes between. Username and Superuser stay.
	EditDirectoryUsers(ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*DirectoryUser)) error
	// RenameUsers sets the names of users and their UpdatedAt; memberships, sessions, tokens, feeds and notifications follow.
	// names maps old ones to new ones, and no new one is an old one. It fails with errs.Conflict when a name is taken, ignoring
	// case.
	RenameUsers(ctx context.Context, tenant string, names map[string]string, at time.Time) error

	// DomainTeams returns the teams of a domain, ordered by id.
	DomainTeams(ctx context.Context, tenant, domain string) ([]Team, error)
	// Slugs returns the slugs of all teams.
	Slugs(ctx context.Context, tenant string) ([]string, error)
	// DomainMembers calls each with every membership of the teams of a domain, in no order. each must not use the store.
	DomainMembers(ctx context.Context, tenant, domain string, each func(MemberKey)) error
	// AddMembers adds memberships; those that exist keep their roles.
	AddMembers(ctx context.Context, tenant string, all []Membership) error
	// DeleteMembers removes memberships; those that do not exist are no error.
	DeleteMembers(ctx context.Context, tenant string, all []MemberKey) error

	// DomainCounts counts the users and teams of every domain that has any.
	DomainCounts(ctx context.Context, tenant string) (map[string]DomainCounts, error)
}
