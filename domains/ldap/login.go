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

// maxUsername is the longest name that is searched for, in bytes.
const maxUsername = 256

// Login implements domains.PasswordLogin. With a refused password it returns the identity, too. An unknown name takes as many
// requests as a known one.
func (r *realm) Login(ctx context.Context, username, password string) (domains.Identity, error) {
	if username == "" || password == "" { // most directories accept a bind without a password, as anonymous
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

// find returns the one entry with a name, or why there is none. Directories match names loosely; find requires them to be
// equal except for case, so that one account cannot be attacked under many names.
func (c *conn) find(username string) (e *goldap.Entry, why string, err error) {
	if !isName(username) {
		username = rand.Text() // the same request, which finds nothing
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

// isName reports whether a text may be a username.
func isName(s string) bool {
	return len(s) <= maxUsername && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func sameName(a, b string) bool { return strings.EqualFold(norm.NFC.String(a), norm.NFC.String(b)) }

// check reports whether an account can bind with a password.
func (c *conn) check(dn, password string) (bool, error) {
	c.resetTimeout()
	err := redacted(c.Bind(dn, password), password)
	switch {
	case err == nil:
		return true, nil
	case isRefusal(err):
		return false, nil
	}
	return false, c.failed(err, c.noLogin)
}
