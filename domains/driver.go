package domains

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Driver is one way to authenticate people: a type of directory or of single sign-on. A host adds
// its own with Config.DomainDrivers. Implementations must pass drivertest.Test. If the
// configuration has secrets, the Realm should be a SecretSender: otherwise every change of the
// configuration must send the secrets again.
type Driver interface {
	// Info describes the driver. It always returns the same.
	Info() Info
	// Open reads a domain's configuration, a JSON object with its secrets in the clear. It makes no
	// connections: a domain can be opened while its directory is unreachable. Members that the
	// driver does not know are no error. It returns errs.Invalid, with a message that begins with
	// the member at fault ("url must …").
	Open(config json.RawMessage) (Realm, error)
}

// Info describes a driver for the API, and its configuration for package domains.
type Info struct {
	ID             string // such as LDAP; stored with each domain, so it never changes
	Name           string // for people
	Group          string // heading under which a client lists it
	Image          string // path of a picture, "" for none
	LoginComponent string // names of a client's components
	EditComponent  map[string]any
	ScanComponent  map[string]any // nil for a driver whose realms are no Directory
	LoginMethod    string         // of the login route: POST for a password, GET for a redirect
	// a provider's answer comes with a form of its own site, as SAML's: browsers bring cookies with
	// it only over https
	AnswersByForm bool
	UsernameParam string // members of the login's body, "" for a redirect
	PasswordParam string
	// ManagesPassword reports whether this service stores the passwords of the driver's people:
	// those of local alone.
	ManagesPassword bool

	// Members are the names of the members that a configuration may have. Others are refused, as
	// they could be misspelled secrets, which would be stored and shown. "attributes.username"
	// names the member of a member; an object with such a name may have no other members. nil: any.
	Members  []string
	Secrets  []string          // those of the top level that are write-only
	Defaults map[string]string // attributes of a new domain, for the template; nil: there is no template
}

// MemberNames returns the names of the members of a member, for Info.Members, in order.
func MemberNames[T any](member string, of map[string]T) []string {
	var names []string
	for name := range of {
		names = append(names, member+"."+name)
	}
	slices.Sort(names)
	return names
}

// Realm is an opened domain. It implements any of the interfaces below, for what it supports.
// Methods may be called concurrently. A call ends with its context.
type Realm interface {
	// Check returns the reason why nobody can log in, as far as the configuration alone tells, for
	// instance that connections to its address are denied; nil if there is none. It makes no
	// connections. The reason is errs.Invalid, with a message that begins with the member at fault
	// ("url must …").
	Check() error
}

// SecretSender is a Realm that sends its secrets to a server. When a configuration changes, a
// stored secret is kept only if the realm of the new one sends it to the same server. A Realm
// without this interface may send secrets to any server that its configuration names: they are kept
// only while the other members of the configuration stay the same.
type SecretSender interface {
	Realm
	// Redirects returns the member of the configuration because of which this realm sends secrets
	// to another server than before, or lets others read them, "" for none. Two spellings of one
	// address are the same. before is the realm of the previous configuration, of any driver.
	Redirects(before Realm) string
}

// Pausing is a Realm that asks its server nothing for a while after the server has refused the
// account of its configuration, as servers lock accounts after some wrong passwords, and each
// log-in of anybody would be one more.
type Pausing interface {
	Realm
	// Paused returns the refusal, as a sentence for a superuser, while the realm asks nothing; nil
	// otherwise. It makes no connections. A realm that is opened anew does not pause.
	Paused() error
}

// DeniedAddress returns the error of Check for a member of a configuration that is the address of a
// server to which connections are denied.
func DeniedAddress(member string) error {
	return errs.Wrap(errs.Invalid, errDenied,
		"%s must not be an address in a network that this server does not connect to: its operator names the "+
			"networks that "+
			"it may connect to in TENANTCONTENT_ALLOW_NETWORKS", member)
}

var errDenied = errors.New("the address is denied")

// PasswordLogin is a Realm whose people log in with a name and a password that the realm checks.
type PasswordLogin interface {
	Realm
	// Login is never called with an empty name or password. It fails if ctx has ended, and not with
	// a refusal. It returns errs.Unauthenticated for every refusal alike, with the Identity, or
	// only its ID, of the person if known: the failure counts against that user, whatever name was
	// typed, and one who is Disabled in it is disabled here, too. It returns errs.Upstream if the
	// realm could not check the password.
	Login(ctx context.Context, username, password string) (Identity, error)
}

// RedirectLogin is a Realm whose people log in at a provider, where their browser is sent.
type RedirectLogin interface {
	Realm
	// Begin returns the address to send the browser to, and the state of this login for Finish,
	// which is kept sealed for ten minutes and for one use. It returns errs.Upstream if the
	// provider cannot be reached.
	Begin(ctx context.Context, at Endpoints, state string) (location string, memory []byte, err error)
	// Finish checks the provider's answer that the browser brought. Errors: errs.Unauthenticated
	// with the reason, which is logged and not shown; errs.Upstream.
	Finish(ctx context.Context, at Endpoints, memory []byte, answer Answer) (SignedIn, error)
}

// FormLogin is a RedirectLogin that can send the browser to its provider with a form, too.
type FormLogin interface {
	RedirectLogin
	// BeginForm is as Begin. If form is not nil, the browser posts it to location.
	BeginForm(
		ctx context.Context, at Endpoints, state string,
	) (location string, form url.Values, memory []byte, err error)
}

// UnaskedLogin is a RedirectLogin that may also take an answer that nobody here has asked for,
// because its person has begun the login at the provider.
type UnaskedLogin interface {
	RedirectLogin
	// Accept checks such an answer. id tells it from all others of the provider, and until is when
	// the realm refuses it for its age: an id that comes a second time before is refused by the
	// caller. Errors as Finish, also where the configuration does not allow it.
	Accept(ctx context.Context, at Endpoints, answer Answer) (who SignedIn, id string, until time.Time, err error)
}

// LogoutAtProvider is a RedirectLogin that logs people out at its provider, too.
type LogoutAtProvider interface {
	RedirectLogin
	// BeginLogout returns the address to send the browser to so that the person of a login is
	// logged out there, "" if the provider offers none, and the state of this logout for
	// FinishLogout. session is ProviderSession.Memory of that login. It returns errs.Upstream if
	// the provider cannot be reached.
	BeginLogout(
		ctx context.Context, at Endpoints, session []byte, state string,
	) (location string, memory []byte, err error)
	// FinishLogout checks the provider's answer that the browser brought. It returns
	// errs.Unauthenticated with the reason, which is logged: this service's session has ended
	// before.
	FinishLogout(ctx context.Context, at Endpoints, memory []byte, answer Answer) error
}

// FormLogout is a LogoutAtProvider that can send the browser to its provider with a form, too.
type FormLogout interface {
	LogoutAtProvider
	// BeginFormLogout is as BeginLogout. If form is not nil, the browser posts it to location.
	BeginFormLogout(
		ctx context.Context, at Endpoints, session []byte, state string,
	) (location string, form url.Values, memory []byte, err error)
}

// LogoutReceiver is a RedirectLogin whose provider tells when people have logged out there.
type LogoutReceiver interface {
	RedirectLogin
	// ReceiveLogout checks a notice of the provider, which has no State. Errors:
	// errs.Unauthenticated with the reason, which is logged; errs.Upstream if the provider's keys
	// cannot be read.
	ReceiveLogout(ctx context.Context, at Endpoints, notice Answer) (LogoutNotice, error)
}

// LogoutNotice tells that a person has logged out at a provider.
type LogoutNotice struct {
	Subject  string   // ProviderSession.Subject of the sessions that end, "" for those of IDs, whosever they are
	Sessions []string // ProviderSession.ID of the sessions that end; none: all of Subject
	// ID is of this notice, so that it is used once until the time Until, after which the realm
	// refuses it.
	ID    string
	Until time.Time
	// Location is the address where the browser goes with the answer, when it was the browser that
	// brought the notice; "" otherwise. If Form is not nil, the browser posts it there.
	Location string
	Form     url.Values
}

// ClockSkew is how far the clocks of a provider and of this service may differ.
const ClockSkew = 3 * time.Minute

// ProviderSession is the session of a person at a provider, for a LogoutAtProvider and a
// LogoutReceiver.
type ProviderSession struct {
	Subject string // the person, as notices of a logout name them
	ID      string // of the session there in such notices, "" for none
	Memory  []byte // what BeginLogout needs, at most 16 KiB; kept sealed, as long as the session here
}

// SignedIn is a person who has logged in at a provider, as the provider reports them.
type SignedIn struct {
	Identity
	// AccountID is the id that the person has in the directory behind the provider, such as an
	// objectGUID, as the provider writes it; "" for none.
	AccountID     string
	EmailVerified bool // the provider vouches that Email is the person's
	// Groups are the person's groups at the provider; nil if it reports none, not even an empty
	// list.
	Groups []string
	// NoGroups is the reason why the provider left the groups out, such as that a person has too
	// many for a token; "" for none.
	NoGroups string
	// Claims are the texts that the provider sent, by the name of the claim or attribute.
	Claims map[string][]string
	// Session is the session at the provider.
	Session ProviderSession
}

// Metadata is a RedirectLogin that describes this service to the provider.
type Metadata interface {
	Realm
	// Metadata returns a document and its content type.
	Metadata(at Endpoints) (document []byte, contentType string, err error)
}

// Discoverer is a Realm that reads what its provider publishes when its configuration is saved.
type Discoverer interface {
	Realm
	// Discover reads it now, whatever is known already. Errors: errs.Invalid, with a message that
	// begins with the member at fault ("issuer must …"), also when the provider cannot be reached.
	Discover(ctx context.Context) error
}

// Tester is a Realm that can be tried out.
type Tester interface {
	Realm
	// Test tries what a login and a scan need, in the order of the steps, and ends with the first
	// one that fails. It looks for the person with a username, "" for any person. It changes
	// nothing here and there, and a Step has no secret.
	Test(ctx context.Context, at Endpoints, username string) []Step
}

// Step is one thing that a Tester has tried.
type Step struct {
	// connect, tls, bind, search, person or groups; discovery, metadata, keys, signing, encryption
	// or client of a provider
	Name    string
	OK      bool      // it worked
	Message string    // a sentence for the administrator: what was found, or what went wrong and what to do
	Person  *Identity // in the step person: who would become a user
	Groups  []Group   // in the step groups: some of those that would become teams, without members
}

// Number returns a number with what it counts, such as "1 key" and "2 keys", for the message of a
// Step.
func Number(n int, one, more string) string {
	if n == 1 {
		more = one
	}
	return strconv.Itoa(n) + " " + more
}

// AccountNames is a PasswordLogin whose people have several names, such as anna,
// anna@corp.example.com and CORP\anna.
type AccountNames interface {
	PasswordLogin
	// Account returns the short name of a name of any form, as users are called here; "" if it is a
	// name of another domain. It makes no connections.
	Account(name string) string
}

// Endpoints are the absolute addresses of this service for one domain.
type Endpoints struct {
	Callback string // GET, where OpenID Connect comes back
	ACS      string // POST, where SAML comes back
	Metadata string

	LoggedOut         string // GET, where OpenID Connect comes back after a logout
	BackchannelLogout string // POST, where an OpenID provider sends notices
	SLO               string // GET and POST, where browsers bring requests and responses of SAML about logouts
}

// Answer is what a provider sends, mostly by a browser: the parameters of the query or of the form.
type Answer struct {
	Params url.Values
	Query  string // as it came, for signatures over it; "" for a form
	State  string // that of Begin; domains has checked that it came back
}

// Directory is a Realm that lists its people and groups.
type Directory interface {
	Realm
	// Entries returns every person, then every group. It reads page by page and keeps no more in
	// memory than it must. The first error ends it, and makes the entries before it invalid.
	// Errors: errs.Upstream if the directory cannot be reached, refuses the bind or breaks off.
	Entries(ctx context.Context) iter.Seq2[Entry, error]
}

// Finder is a Directory that can look for one person.
type Finder interface {
	Directory
	// Find returns the person who logs in with a username, of any form. Errors: errs.NotFound with
	// the reason, as a sentence for a superuser, if there is none; errs.Upstream.
	Find(ctx context.Context, username string) (Identity, error)
}

// Entry is a person or a group; the other one is nil.
type Entry struct {
	Person *Identity
	Group  *Group
}

// Identity is a person as a realm reports it.
type Identity = principals.Identity

// Group is a group of people, which becomes a team.
type Group = dirsync.Group

// Bounded is a Driver that connects to servers which superusers of tenants name.
type Bounded interface {
	Driver
	// Within returns the Driver without connections to denied networks, unless it has a dialer or
	// client of its own. It logs to log, unless it has a logger. The root calls it: see
	// tenantcontent.Config.AllowNetworks.
	Within(denied []netip.Prefix, log *slog.Logger) Driver
}
