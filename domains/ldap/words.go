package ldap

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"
)

// dataCode matches the code in a message of Active Directory such as "80090308: LdapErr:
// DSID-0C09042A, comment: AcceptSecurityContext error, data 52e, v3839".
var dataCode = regexp.MustCompile(`AcceptSecurityContext error, data ([0-9a-fA-F]{1,8}),`)

var dataWords = map[string]string{
	"525": "there is no such account",
	"52e": "the password is wrong, or there is no such account",
	"530": "it may not log in at this time",
	"531": "it may not log in from this computer",
	"532": "its password has expired",
	"533": "it is disabled",
	"701": "it has expired",
	"773": "its password must be changed first",
	"775": "it is locked",
}

// saysDisabled reports whether a directory refuses an account because it is disabled or has
// expired.
func saysDisabled(err error) bool {
	words := subCode(err)
	return words == inactivated || slices.ContainsFunc([]string{"533", "701"}, func(code string) bool {
		return strings.HasSuffix(words, "(data "+code+")")
	})
}

const inactivated = "it is disabled (nsAccountLock)"

// subCode returns what a directory says of an account that it refuses, "" if it says nothing.
func subCode(err error) string {
	result, ok := errors.AsType[*goldap.Error](err)
	if !ok || result.Err == nil {
		return ""
	}
	text := result.Err.Error()
	if code := dataCode.FindStringSubmatch(text); code != nil {
		if words := dataWords[strings.ToLower(code[1])]; words != "" {
			return words + " (data " + strings.ToLower(code[1]) + ")"
		}
		return "data " + strings.ToLower(code[1])
	}
	switch text := strings.ToLower(text); {
	case strings.Contains(text, "account inactivated"):
		return inactivated
	case strings.Contains(text, "password retry limit"):
		return "it is locked (" + accountUnlock + ")"
	case strings.Contains(text, "password expired"):
		return "its password has expired"
	}
	return ""
}

// whatToDo returns what an administrator can do after a request with this result failed, "" if that
// is not known.
func (c *conn) whatToDo(err error) string {
	result, ok := errors.AsType[*goldap.Error](err)
	if !ok {
		return ""
	}
	text := ""
	if result.Err != nil {
		text = result.Err.Error()
	}
	switch result.ResultCode {
	case goldap.LDAPResultSizeLimitExceeded, goldap.LDAPResultAdminLimitExceeded:
		return "It returns only so many entries to " + c.reader() +
			": raise the limit for that account there (OpenLDAP: limits; 389 Directory Server: " +
			"nsSizeLimit and nsLookThroughLimit; Active Directory: MaxPageSize is less than pageSize), or narrow " +
			"userFilter and groupFilter."
	case goldap.LDAPResultTimeLimitExceeded:
		return "It spends only so much time for " + c.reader() +
			": raise the limit there, or index the attributes of userFilter and groupFilter."
	case goldap.LDAPResultInsufficientAccessRights:
		return "Give " + c.reader() + " the right to search and read there."
	case goldap.LDAPResultNoSuchObject:
		return "There is no such entry, or " + c.reader() + " may not see it: see baseDN, userBaseDN and groupBaseDN."
	case goldap.LDAPResultStrongAuthRequired, goldap.LDAPResultConfidentialityRequired:
		return "It wants TLS: use an address with ldaps://, or set startTLS."
	case goldap.LDAPResultInappropriateAuthentication:
		return "It wants a bind: set bindDN and bindPassword."
	case goldap.LDAPResultInvalidDNSyntax:
		return "The name is no DN there."
	case goldap.LDAPResultReferral:
		to := ""
		if all := alternatives(result.Packet); len(all) > 0 {
			to = " (" + printable(all[0]) + ")"
		}
		return "It does not have this part of the tree and refers to another server" + to +
			": add that one to hosts if it is yours."
	case goldap.LDAPResultOperationsError:
		if c.bindDN == "" || strings.Contains(text, "successful bind must be completed") {
			return "It wants a bind: set bindDN and bindPassword."
		}
	}
	return ""
}

// printable returns a short text of a directory for a message.
func printable(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s), "")
}
