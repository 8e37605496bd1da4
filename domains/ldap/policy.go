package ldap

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
)

// policy is what a directory reports of a password beside the result of a bind. A bind can succeed
// although nobody may work with the password: OpenLDAP and 389 Directory Server let people in to
// change it.
//
// Sources: draft-behera-ldap-password-policy, draft-vchu-ldap-pwd-policy.
type policy struct {
	refusal string // why nobody may log in with the password, "" if that is not reported
	grace   bool   // it has expired, and works a few times more
	warning string // what happens soon, or has happened, "" for nothing
}

// Errors of the control of draft-behera.
const (
	policyExpired    = 0
	policyLocked     = 1
	policyMustChange = 2
)

var policyWords = map[int8]string{
	policyExpired:    "its password has expired",
	policyLocked:     "it is locked",
	policyMustChange: "its password must be changed first",
}

// policyOf returns the policy of the result of a bind, which may be nil. refused reports whether
// the bind was refused.
func policyOf(result *goldap.SimpleBindResult, refused bool) (p policy) {
	if result == nil {
		return p
	}
	// what the controls of draft-vchu report, which do not tell an expired password from one that
	// must be changed
	old := ""
	for _, control := range result.Controls {
		switch c := control.(type) {
		case *goldap.ControlBeheraPasswordPolicy:
			switch p.refusal = policyWords[c.Error]; {
			case c.Grace >= 0:
				p.grace, p.warning = true, "its password has expired and works "+times(c.Grace)+" more"
			case c.Expire >= 0:
				p.warning = "its password expires in " + (time.Duration(min(c.Expire, 1e9)) * time.Second).String()
			}
		case *goldap.ControlVChuPasswordMustChange:
			if old = policyWords[policyMustChange]; refused {
				old = policyWords[policyExpired]
			}
		case *goldap.ControlVChuPasswordWarning:
			p.warning = cmp.Or(
				p.warning, "its password expires in "+(time.Duration(min(c.Expire, 1e9))*time.Second).String(),
			)
		}
	}
	switch {
	case p.grace && p.refusal == policyWords[policyExpired]: // which is why there is grace
		p.refusal = ""
	case !p.grace:
		p.refusal = cmp.Or(p.refusal, old)
	}
	return p
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprint(n, " times")
}

// bindWith binds with a password. The error does not have it.
func (c *conn) bindWith(dn, password string) (policy, error) {
	result, err := c.SimpleBind(goldap.NewSimpleBindRequest(
		dn, password, []goldap.Control{goldap.NewControlBeheraPasswordPolicy()},
	))
	return policyOf(result, err != nil), redacted(err, password)
}

// errPolicy is what refusals of a policy wrap whose bind has succeeded.
var errPolicy = errors.New("the directory accepts the password for nothing but its change")

// check returns the refusal of an account that cannot log in with a password, nil if it can. locked
// reports whether the entry shows that it is locked, which not every directory says when it refuses
// a bind.
func (c *conn) check(dn, password string, locked bool) (refusal, err error) {
	c.resetTimeout()
	defer c.silent.Stop()
	p, err := c.bindWith(dn, password)
	words := cmp.Or(subCode(err), p.refusal)
	switch {
	case err == nil && p.refusal != "":
		err = errPolicy
	case err == nil:
		if p.warning != "" {
			c.log.WarnContext(
				c.ctx, "directory warns of a password", "host", c.url, "entry", printable(dn), "reason",
				p.warning,
			)
		}
		return nil, nil
	case !isRefusal(err):
		return nil, c.failed(err, c.noLogin)
	case words == "" && locked:
		words = "it is locked, as its entry shows, or the password is wrong"
	}
	why := "the directory refuses the password"
	if words != "" {
		why = "the directory refuses the account: " + words
	}
	return errs.Wrap(errs.Unauthenticated, fmt.Errorf("%s: %w", why, err), "Unable to log in"), nil
}
