package ldap

import (
	"context"
	"errors"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
)

// refused is the answer to every login that fails, with the reason for the log.
func refused(reason string) error {
	return errs.Wrap(errs.Unauthenticated, errors.New(reason), "Unable to log in")
}

// isRefusal reports whether a directory has looked at the password of a bind and does not let that account in: the
// password is wrong, there is none, the account is gone, locked or expired.
func isRefusal(err error) bool {
	return goldap.IsErrorAnyOf(err, goldap.LDAPResultInvalidCredentials, goldap.LDAPResultInappropriateAuthentication,
		goldap.LDAPResultNoSuchObject, goldap.LDAPResultUnwillingToPerform, goldap.LDAPResultConstraintViolation,
		goldap.LDAPResultInsufficientAccessRights)
}

// failed says why the directory could not be asked: errs.Upstream, or the context's own error when that was cancelled.
// sentence is for errors that come from the directory or its address, and has a verb for url.
func (c *conn) failed(err error, sentence func(err error) string) error {
	switch {
	case errors.Is(c.ctx.Err(), context.Canceled):
		return c.ctx.Err()
	case c.ctx.Err() != nil, c.late.Load(), errors.Is(err, context.DeadlineExceeded):
		return errs.Wrap(errs.Upstream, err, "The directory %s does not answer in time (timeoutMs: %d).", c.url, c.timeout.Milliseconds())
	case c.frames != nil && c.frames.exceeded.Load():
		return errs.Wrap(errs.Upstream, err, "The directory %s sends more than this service takes: narrow the filters.", c.url)
	}
	return errs.Wrap(errs.Upstream, err, "%s", sentence(err))
}

func (c *conn) noConnection(error) string {
	return "The directory " + c.url + " cannot be reached."
}

func (c *conn) noTLS(error) string {
	return "TLS with the directory " + c.url + " fails: it must offer TLS, " +
		"with a certificate for this name that caCert or a known authority has signed."
}

func (c *conn) noBind(err error) string {
	if code := resultOf(err); code != "" {
		return "The directory " + c.url + " refuses the bind of " + c.bindDN + " (" + code + ")."
	}
	return c.brokeOff(err)
}

func (c *conn) noLogin(err error) string {
	if code := resultOf(err); code != "" {
		return "The directory " + c.url + " does not check passwords (" + code + ")."
	}
	return c.brokeOff(err)
}

func (c *conn) noSearch(base string) func(error) string {
	return func(err error) string {
		if code := resultOf(err); code != "" {
			return "The directory " + c.url + " refuses a search below " + base + " (" + code + ")."
		}
		return c.brokeOff(err)
	}
}

func (c *conn) brokeOff(error) string {
	return "The connection with the directory " + c.url + " broke off."
}

// resultOf names the result code that the directory has answered with, "" when it has not answered.
func resultOf(err error) string {
	e, ok := errors.AsType[*goldap.Error](err)
	if !ok || e.ResultCode >= goldap.ErrorNetwork {
		return ""
	}
	return goldap.LDAPResultCodeMap[e.ResultCode]
}

// redacted hides a password that the directory may have put into what it says about a bind.
func redacted(err error, password string) error {
	e, ok := errors.AsType[*goldap.Error](err)
	if !ok || e.Err == nil {
		return err
	}
	return goldap.NewError(e.ResultCode, errors.New(strings.ReplaceAll(e.Err.Error(), password, "********")))
}
