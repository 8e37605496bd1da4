package ldap

import (
	"context"
	"crypto/rand"
	"strings"
	"unicode"
	"unicode/utf8"

	goldap "github.com/go-ldap/ldap/v3"
	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/domains"
)

// maxUsername is the longest name that is looked for, in bytes.
const maxUsername = 256

// Login implements domains.PasswordLogin, and says whom a refused password was for. Whoever is not found costs as many questions as whoever is.
func (r *realm) Login(ctx context.Context, username, password string) (domains.Identity, error) {
	if username == "" || password == "" { // a bind without a password succeeds with most directories, as nobody
		return domains.Identity{}, refused("no name or no password")
	}
	c, err := r.connect(ctx, maxLoginBytes)
	if err != nil {
		return domains.Identity{}, err
	}
	defer c.close()
	e, why, err := c.find(username)
	if err != nil {
		return domains.Identity{}, err
	}
	if e == nil {
		_, err := c.check("cn="+rand.Text()+","+r.people.base, password)
		if err == nil {
			err = refused(why)
		}
		return domains.Identity{}, err
	}
	who, err := r.identity(e)
	if err != nil {
		return domains.Identity{}, err
	}
	ok, err := c.check(e.DN, password)
	switch {
	case err != nil:
		return domains.Identity{}, err
	case !ok:
		return who, refused("the directory refuses the password")
	case who.Disabled:
		return who, refused("the account is disabled")
	}
	return who, nil
}

// find returns the one entry with a name, or says why there is none. What a directory takes for the same name may be less
// than the same: the name has to be equal except for case, so that nobody can be tried under many names.
func (c *conn) find(username string) (e *goldap.Entry, why string, err error) {
	if !isName(username) {
		username = rand.Text() // the same question, of which nothing comes
	}
	p := c.people
	p.filter = "(&" + p.filter + "(" + c.attributes["username"] + "=" + goldap.EscapeFilter(username) + "))"
	found, err := c.few(request(p, c.personAttributes(), 2))
	switch {
	case goldap.IsErrorWithCode(err, goldap.LDAPResultSizeLimitExceeded) || len(found) > 1:
		return nil, "more than one entry has this name", nil
	case err != nil:
		return nil, "", c.failed(err, c.noSearch(p.base))
	case len(found) == 0:
		return nil, "no entry has this name", nil
	case !sameName(c.text(found[0], "username"), username):
		return nil, "the entry that was found has another name", nil
	}
	return found[0], "", nil
}

// isName reports whether a text may be somebody's name at all.
func isName(s string) bool {
	return len(s) <= maxUsername && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func sameName(a, b string) bool { return strings.EqualFold(norm.NFC.String(a), norm.NFC.String(b)) }

// check binds as an account.
func (c *conn) check(dn, password string) (bool, error) {
	c.awake()
	err := redacted(c.Bind(dn, password), password)
	switch {
	case err == nil:
		return true, nil
	case isRefusal(err):
		return false, nil
	}
	return false, c.failed(err, c.noLogin)
}
