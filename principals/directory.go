package principals

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
)

// Identity is a person as an authentication domain reports it.
type Identity = profile.Identity

// DirectoryUser has the fields of a user that a directory sets, and those that a scan reads.
type DirectoryUser = profile.User

// Holder is the user who has a name.
type Holder struct{ Username, Domain string }

// DomainCounts counts the users and teams of a domain, and those of both that have a source id.
type DomainCounts struct{ Users, Teams, Identified int }

// ProfileStore is the part of a Store that logins at directories and scans of them share. Domains
// are those of the rows: an unknown one has no users and teams.
type ProfileStore interface {
	// Holders returns the users of any domain that have the given folded names, by folded name.
	Holders(ctx context.Context, tenant string, folded []string) (map[string]Holder, error)
	// AddDirectoryUsers adds users to a domain, without passwords and rights: Superuser is ignored.
	// It fails with errs.Conflict when a name is taken.
	AddDirectoryUsers(ctx context.Context, tenant, domain string, all []DirectoryUser, at time.Time) error
	// EditDirectoryUsers calls edit with each of the given users that exist, in no order, and
	// writes those that it changed with UpdatedAt; no other write to them comes between. Username
	// and Superuser stay.
	EditDirectoryUsers(
		ctx context.Context, tenant string, usernames []string, at time.Time, edit func(*DirectoryUser),
	) error
}

// DomainStore is the part of a Store for the users and teams of domains. A scan needs more: see
// dirsync.Store.
type DomainStore interface {
	ProfileStore
	// UserFrom returns the user of a domain with a source id, the first by username of several. It
	// fails with errs.NotFound.
	UserFrom(ctx context.Context, tenant, domain, sourceID string) (User, error)
	// UsersFrom returns the users of a domain who have one of some source ids, or by SCIM one of
	// them as externalId, two at most.
	UsersFrom(ctx context.Context, tenant, domain string, sourceIDs []string) ([]User, error)
	// UsersWithEmail returns the users of a domain with an e-mail address, ignoring the case of
	// ASCII letters, two at most, without those who have typed it themselves.
	UsersWithEmail(ctx context.Context, tenant, domain, email string) ([]User, error)
	// RenameUsers sets the names of users and their UpdatedAt; memberships, sessions, tokens, feeds
	// and notifications follow. names maps old ones to new ones, and no new one is an old one. It
	// fails with errs.Conflict when a name is taken, ignoring case.
	RenameUsers(ctx context.Context, tenant string, names map[string]string, at time.Time) error
	// DomainPrincipals returns the usernames and team ids of a domain, ordered.
	DomainPrincipals(ctx context.Context, tenant, domain string) (usernames, teamIDs []string, err error)
	// DomainCounts counts the users and teams of every domain that has any.
	DomainCounts(ctx context.Context, tenant string) (map[string]DomainCounts, error)
}

// SourceSCIM is the source of the users and teams that a provider of identities keeps by SCIM. A
// login does not change the name and the profile of such a user.
const SourceSCIM = "scim"

// announcing is a Store that announces what logins at directories write: the methods of
// profile.Announced hide those of the Store, which are a level deeper.
type announcing struct {
	profile.Announced
	unannounced
}

type unannounced struct{ Store }

func announce(s Store, feed *entity.Changes) Store {
	return announcing{profile.Announce(s, feed), unannounced{s}}
}
