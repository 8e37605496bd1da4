package ldap

import (
	"cmp"
	"context"
	"errors"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
	"github.com/tenantcontent/tenantcontent/internal/secure/redact"
)

// refused returns the error for every login that fails, with the reason for the log.
func refused(reason string) error {
	return errs.Wrap(errs.Unauthenticated, errors.New(reason), "Unable to log in")
}

// isRefusal reports whether a directory has refused the account of a bind: the password is wrong or
// missing, or the account does not exist, is locked or has expired.
func isRefusal(err error) bool {
	return goldap.IsErrorAnyOf(err, goldap.LDAPResultInvalidCredentials, goldap.LDAPResultInappropriateAuthentication,
		goldap.LDAPResultNoSuchObject, goldap.LDAPResultUnwillingToPerform, goldap.LDAPResultConstraintViolation,
		goldap.LDAPResultInsufficientAccessRights)
}

// failed returns the error for a failed request: errs.Upstream, or the context's error if that was
// canceled. sentence returns the message for errors of the directory or the connection.
func (c *conn) failed(err error, sentence func(err error) string) error {
	switch {
	case errors.Is(c.ctx.Err(), context.Canceled):
		return c.ctx.Err()
	case c.ctx.Err() != nil, c.timedOut.Load(), errors.Is(err, context.DeadlineExceeded):
		return errs.Wrap(
			errs.Upstream, err, "The directory %s does not answer in time (timeoutMs: %d).", c.url,
			c.timeout.Milliseconds(),
		)
	case c.frames != nil && c.frames.exceeded.Load():
		return errs.Wrap(
			errs.Upstream, err, "The directory %s sends more than this service takes: narrow the filters.",
			c.url,
		)
	}
	return errs.Wrap(errs.Upstream, err, "%s", sentence(err))
}

func (c *conn) noConnection(err error) string {
	if why := certs.Explain(err); why != "" {
		return "The directory " + c.url + " cannot be reached: " + why + "."
	}
	return "The directory " + c.url + " cannot be reached."
}

func (c *conn) noTLS(err error) string {
	return "TLS with the directory " + c.url + " fails: " +
		cmp.Or(certs.Explain(err), "it must offer TLS 1.2 or newer, "+
			"with a certificate for this name that caCert or a known authority has signed") + "."
}

func (c *conn) noBind(err error) string {
	if resultOf(err) == "" {
		return c.brokeOff(err)
	}
	return c.refusedBind(err, "")
}

// refusedBind returns the sentence for a bind of the service that was refused. more is what the
// directory says beside the result.
func (c *conn) refusedBind(err error, more string) string {
	sentence := "The directory " + c.url + " refuses the bind of " + c.bindDN + " (" + resultOf(err) + ")"
	if words := cmp.Or(subCode(err), more); words != "" {
		return sentence + ": " + words + "."
	}
	return c.advised(sentence+".", err)
}

func (c *conn) noLogin(err error) string {
	if code := resultOf(err); code != "" {
		return c.advised("The directory "+c.url+" does not check passwords ("+code+").", err)
	}
	return c.brokeOff(err)
}

func (c *conn) noSearch(base string) func(error) string {
	return func(err error) string {
		if code := resultOf(err); code != "" {
			return c.advised("The directory "+c.url+" refuses a search below "+base+" ("+code+").", err)
		}
		return c.brokeOff(err)
	}
}

// advised adds to a sentence what can be done.
func (c *conn) advised(sentence string, err error) string {
	return strings.TrimSpace(sentence + " " + c.whatToDo(err))
}

func (c *conn) brokeOff(error) string {
	return "The connection with the directory " + c.url + " broke off."
}

// resultOf returns the name of the result code of a response, "" if there was none.
func resultOf(err error) string {
	e, ok := errors.AsType[*goldap.Error](err)
	if !ok || e.ResultCode >= goldap.ErrorNetwork {
		return ""
	}
	return goldap.LDAPResultCodeMap[e.ResultCode]
}

// redacted masks a password in an error, as a directory may repeat it in its message.
func redacted(err error, password string) error {
	e, ok := errors.AsType[*goldap.Error](err)
	if !ok || e.Err == nil {
		return err
	}
	return goldap.NewError(e.ResultCode, errors.New(redact.Text(e.Err.Error(), password)))
}
