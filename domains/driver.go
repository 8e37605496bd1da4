package domains

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Driver is one way to authenticate people: a kind of directory or of single sign-on. It is what a host extends:
// Config.DomainDrivers. Implementations must pass drivertest.Test. Where the configuration has secrets, the Realm should be a
// SecretSender: without it, whoever changes anything else of the configuration must send the secrets again.
type Driver interface {
	// Info describes the driver. It gives the same each time.
	Info() Info
	// Open reads a domain's configuration, a JSON object with its secrets in the clear. It asks nobody: a domain can be
	// opened while its directory is away. Members that the driver does not know are no error.
	// Errors: errs.Invalid, which begins with the member that does not fit ("url must …").
	Open(config json.RawMessage) (Realm, error)
}

// Info is what the API shows of a driver, and what domains must know of its configuration.
type Info struct {
	ID             string // such as LDAP; stored with each domain, so it never changes
	Name           string // for people
	Group          string // heading under which a client lists it
	Image          string // path of a picture, "" for none
	LoginComponent string // names of a client's components
	EditComponent  map[string]any
	ScanComponent  map[string]any // nil for a driver whose realms are no Directory
	LoginMethod    string         // of the login route: POST for a password, GET for a redirect
	UsernameParam  string         // members of the login's body, "" for a redirect
	PasswordParam  string
	// ManagesPassword says that this service keeps the passwords of the driver's people and can change them: local alone.
	ManagesPassword bool

	// Members are what a configuration may have; others are refused, so that nothing is kept, and shown, that only looks like
	// a secret. "attributes.username" is the member of a member; where there is such a name, the object may have no others.
	// nil: any.
	Members  []string
	Secrets  []string          // those of the top level that are write-only
	Defaults map[string]string // attributes of a new domain, for the template; nil: there is no template
}

// Below returns the names of the members of a member, for Info.Members, in order.
func Below[T any](member string, of map[string]T) []string {
	var names []string
	for name := range of {
		names = append(names, member+"."+name)
	}
	slices.Sort(names)
	return names
}

// Realm is one configured domain, opened. What it can do it says with the interfaces below; it may have any of them.
// Methods may be called at the same time. A call ends with its context.
type Realm interface{}

// SecretSender is a Realm whose secrets go to a server. A stored secret is kept when a configuration changes only where the
// realm of the new one sends it nowhere else. A Realm without this interface may send them anywhere that its configuration
// says: they are kept while its other members stay the same, and must be sent again with any other configuration.
type SecretSender interface {
	// Redirects returns the member of the configuration by which this realm sends secrets to another server than before, or
	// lets others read them, "" for none. Two spellings of one address are the same. before is the realm of the
	// configuration until now, of any driver.
	Redirects(before Realm) string
}

// Checker is a Realm that can tell by its configuration alone that nobody can log in there, such as that connections to its
// address are denied.
type Checker interface {
	// Check asks nobody. Errors: errs.Invalid, which begins with the member that is the reason ("url must …").
	Check() error
}

// DeniedAddress returns the error of Checker for a member of a configuration that is the address of a server to which
// connections are denied.
func DeniedAddress(member string) error {
	return errs.New(errs.Invalid, "%s must not be an address in a network that this server does not connect to", member)
}

// PasswordLogin is a Realm whose people log in with a name and a password that the realm checks.
type PasswordLogin interface {
	// Login never gets an empty name or password.
	// Errors: errs.Unauthenticated for every refusal alike, with the Identity, or its ID alone, when it is known whom the
	// password was for: the failure counts against that user, whatever name was typed; errs.Upstream when nothing could be
	// found out.
	Login(ctx context.Context, username, password string) (Identity, error)
}

// RedirectLogin is a Realm whose people log in at a provider, where their browser is sent.
type RedirectLogin interface {
	// Begin returns where to send the browser, and what Finish needs to know of this login: it is kept until then, sealed,
	// for ten minutes and for one use. Errors: errs.Upstream when the provider cannot be reached.
	Begin(ctx context.Context, at Endpoints, state string) (location string, memory []byte, err error)
	// Finish checks what the browser brought back. Errors: errs.Unauthenticated with the reason, which is logged and not
	// shown; errs.Upstream.
	Finish(ctx context.Context, at Endpoints, memory []byte, answer Answer) (Identity, error)
}

// Metadata is a RedirectLogin that describes this service to the provider.
type Metadata interface {
	// Metadata returns a document and its content type.
	Metadata(at Endpoints) (document []byte, contentType string, err error)
}

// Endpoints are the absolute addresses of one domain at this service.
type Endpoints struct {
	Callback string // GET, where OpenID Connect comes back
	ACS      string // POST, where SAML comes back
	Metadata string
}

// Answer is what a browser brings back from a provider: the parameters of the query or of the form.
type Answer struct {
	Params url.Values
	State  string // that of Begin; domains has checked that it came back
}

// Directory is a Realm that lists its people and groups.
type Directory interface {
	// Entries returns every person, then every group. It reads page by page and keeps no more than it must; the first error
	// ends it, and what was given before is worth nothing then. Errors: errs.Upstream when the directory cannot be reached,
	// refuses the bind or breaks off.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}

// Entry is a person or a group; the other one is nil.
type Entry struct {
	Person *Identity
	Group  *Group
}

// Identity is a person as a realm knows it.
type Identity = principals.Identity

// Group is a group of people, which becomes a team.
type Group = principals.Group
