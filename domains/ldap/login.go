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
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxUsername is the longest name that is searched for, in bytes.
const maxUsername = 256

// Login implements domains.PasswordLogin. With a refused password it returns the identity, too. An
// unknown name takes as many requests as a known one.
func (r *realm) Login(ctx context.Context, username, password string) (domains.Identity, error) {
	// Most directories accept a bind without a password, as anonymous, and Samba one with more
	// behind a NUL.
	if username == "" || password == "" || strings.Contains(password, "\x00") {
		return domains.Identity{}, refused("no name or no password, or one that is not a text")
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
		_, err := c.check("cn="+rand.Text()+","+r.people.base, password, false)
		if err == nil {
			err = refused(why)
		}
		return domains.Identity{}, err
	}
	who, err := c.identity(e.Entry)
	if err != nil {
		return domains.Identity{}, err
	}
	refusal, err := e.from.check(e.DN, password, who.Locked)
	if err != nil {
		return domains.Identity{}, err
	}
	switch {
	case refusal != nil:
		who.Disabled = who.Disabled || saysDisabled(refusal)
	case who.Disabled:
		refusal = refused("the account is disabled or has expired")
	default: // a lock that has ended may still be shown, until the next login: the directory was asked, not the entry
		who.Locked = false
	}
	return who, refusal
}

// Find implements domains.Finder.
func (r *realm) Find(ctx context.Context, username string) (domains.Identity, error) {
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
		return domains.Identity{}, errs.New(errs.NotFound, "%s.", why)
	}
	return c.identity(e.Entry)
}

// find returns the one entry with a name, or why there is none.
func (c *conn) find(username string) (e *located, why string, err error) {
	if !isName(username) {
		username = rand.Text() // the same request, which finds nothing
	}
	conditions := c.names.conditions(username)
	p := c.people
	p.filter = "(&" + p.filter + filterOf(conditions) + ")"
	var found []located
	var tooMany bool
	err = c.search(p, func(t target) ([]string, error) {
		search := request(part{t.base, p.filter}, c.loginAttributes(), len(conditions)+1)
		search.Scope = t.scope
		some, referrals, err := t.few(search)
		if goldap.IsErrorWithCode(err, goldap.LDAPResultSizeLimitExceeded) {
			tooMany = true
			return nil, nil
		}
		if err != nil {
			return nil, t.failed(err, t.noSearch(t.base))
		}
		for _, e := range some {
			found = append(found, located{e, t.conn})
		}
		return referrals, nil
	})
	if err != nil {
		return nil, "", err
	}
	if tooMany {
		return nil, "more than one entry has this name", nil
	}
	if e, why = c.names.choose(username, found); e != nil && c.isBuiltin(e.Entry) {
		return nil, "the account is one that Active Directory has by itself (builtin)", nil
	}
	return e, why, nil
}

// isName reports whether a text may be a username.
func isName(s string) bool {
	return len(s) <= maxUsername && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func sameName(a, b string) bool { return strings.EqualFold(norm.NFC.String(a), norm.NFC.String(b)) }
