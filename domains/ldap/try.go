package ldap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// Bounds of a test.
const (
	maxTest       = 30 * time.Second
	maxTestBytes  = 8 << 20
	maxTestPage   = 1000 // people, or groups
	maxTestGroups = 10   // that are shown
)

// Test implements domains.Tester. Every host has its own steps connect and tls; the others are
// those of the first one that can be used.
func (r *realm) Test(ctx context.Context, _ domains.Endpoints, username string) []domains.Step {
	ctx, cancel := context.WithTimeout(ctx, maxTest)
	defer cancel()
	t := &trial{realm: r}
	c := t.connect(ctx)
	if c == nil {
		return t.steps
	}
	defer c.close()
	for _, step := range []func(c *conn, username string) bool{t.bind, t.search, t.person, t.groups} {
		if !step(c, username) {
			break
		}
	}
	return t.steps
}

// trial is a running test.
type trial struct {
	*realm
	steps []domains.Step
	one   *goldap.Entry // a person that was found
	ids   string        // the attribute with the ids of people
	wrong error         // the first person without a usable id
}

func (t *trial) ok(name, format string, args ...any) bool {
	t.steps = append(t.steps, domains.Step{Name: name, OK: true, Message: fmt.Sprintf(format, args...)})
	return true
}

func (t *trial) failed(name, message string) bool {
	t.steps = append(t.steps, domains.Step{Name: name, Message: message})
	return false
}

// connect tries all hosts at once. It returns a connection to the first that works, not yet bound,
// nil for none.
func (t *trial) connect(ctx context.Context) *conn {
	all, steps := make([]*conn, len(t.hosts)), make([]trial, len(t.hosts))
	var hosts sync.WaitGroup
	for i := range t.hosts {
		hosts.Go(func() { all[i] = steps[i].reach(ctx, t.realm, &t.hosts[i]) })
	}
	hosts.Wait()
	var first *conn
	for i, c := range all {
		t.steps = append(t.steps, steps[i].steps...)
		switch {
		case c == nil:
		case first == nil:
			first = c
		default:
			c.close()
		}
	}
	return first
}

// reach tries the connection and TLS of a host, and whether a directory is there. Of an address
// where nothing speaks TLS or LDAP it returns the same, after the same time, whether a connection
// is refused, closed or answered with something else, or nothing comes: the address may be that of
// another server in this network, and an administrator here must not learn what is there.
func (t *trial) reach(ctx context.Context, r *realm, h *host) *conn {
	until := time.Now().Add(r.timeout)
	c, err := r.reach(ctx, h, r.timeout)
	if err != nil && errors.Is(err, egress.ErrDenied) {
		t.failed("connect", errs.MessageOf(err))
		return nil
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		t.failed(
			"connect", errs.MessageOf(err)+" The name "+strconv.Quote(printable(e.Name))+" is not known to DNS here.",
		)
		return nil
	}
	connected := "The directory " + h.url + " can be reached."
	if err == nil {
		if err = c.start(time.Until(until), newBudget(maxTestBytes)); err != nil && spoke(err) {
			t.ok("connect", "%s", connected)
			t.failed("tls", errs.MessageOf(err))
			return nil
		}
	}
	if err == nil {
		err = c.probe(time.Until(until))
	}
	if err != nil {
		sleepUntil(ctx, until)
		t.failed("connect", "No directory answers at "+h.url+": look at the name, the port, the firewall, whether it "+
			"is ldap:// or ldaps:// there, and timeoutMs.")
		return nil
	}
	t.ok("connect", "%s", connected)
	if c.encrypted == nil {
		t.ok(
			"tls",
			"%s is used without TLS: passwords cross the network in the clear. Use ldaps:// or startTLS, unless "+
				"the network is safe by other means.",
			h.url,
		)
		return c
	}
	state := c.encrypted.ConnectionState()
	cert := state.PeerCertificates[0]
	t.ok("tls", "%s speaks %s, with a certificate of %q that is valid until %s.", h.url,
		tls.VersionName(state.Version), printable(cert.Subject.String()),
		cert.NotAfter.UTC().Format(time.DateOnly))
	return c
}

// spoke reports whether an error of start is one that only a server which speaks TLS, or LDAP, can
// cause.
func spoke(err error) bool {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain {
		return false
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if certs.Explain(err) != "" || resultOf(err) != "" {
			return true
		}
	}
	return false
}

// probe reports whether a directory answers: it reads the entry that every directory has of itself
// (RFC 4512, section 5.1), or is refused it. It closes the connection if none does.
func (c *conn) probe(limit time.Duration) error {
	c.silent.Reset(limit)
	defer c.silent.Stop()
	own := goldap.NewSearchRequest(
		"", goldap.ScopeBaseObject, goldap.NeverDerefAliases, 0, 0, false, "(objectClass=*)", []string{"1.1"}, nil,
	)
	if _, err := c.Search(own); err != nil && resultOf(err) == "" {
		c.close()
		return err
	}
	return nil
}

// sleepUntil returns at a time, or when ctx ends.
func sleepUntil(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (t *trial) bind(c *conn, _ string) bool {
	if err := c.bind(); err != nil {
		return t.failed("bind", errs.MessageOf(err))
	}
	if c.bindDN == "" {
		return t.ok("bind", "There is no bindDN: searches are anonymous.")
	}
	return t.ok("bind", "%s accepts the bind of %s.", c.url, c.bindDN)
}

// first reads the first page of a part, all hosts that it refers to included, and reports whether
// there are more entries.
func (c *conn) first(p part, attributes []string, fn func(*goldap.Entry)) (more bool, err error) {
	err = c.search(p, func(t target) ([]string, error) {
		search := request(part{t.base, p.filter}, attributes, 0, goldap.NewControlPaging(min(t.pageSize, maxTestPage)))
		search.Scope = t.scope
		cookie, referrals, err := t.page(search, func(e *goldap.Entry) error { fn(e); return nil })
		more = more || len(cookie) > 0
		return referrals, err
	})
	return more, err
}

// search counts the people of the first page.
func (t *trial) search(c *conn, _ string) bool {
	count, builtin, nameless := 0, 0, 0
	more, err := c.first(c.people, c.personAttributes(), func(e *goldap.Entry) {
		switch {
		case c.isBuiltin(e):
			builtin++
		case c.text(e, "username") == "":
			nameless++
		default:
			if count++; t.one == nil {
				t.one = e
			}
			t.checkID(c, e)
		}
	})
	if err != nil {
		return t.failed("search", errs.MessageOf(err))
	}
	where := fmt.Sprintf("userFilter %s below %s", c.people.filter, c.people.base)
	switch {
	case count > 0:
		atLeast := ""
		if more {
			atLeast = "at least "
		}
		text := fmt.Sprintf("%s%s %s.", atLeast, domains.Number(count, "person matches", "people match"), where)
		if nameless > 0 {
			text += fmt.Sprintf(
				" %s no %s (attributes.username): left out.",
				domains.Number(nameless, "other has", "others have"), c.attributes["username"],
			)
		}
		return t.ok("search", "%s", strings.ToUpper(text[:1])+text[1:]+c.leftOut())
	case nameless > 0:
		return t.failed("search",
			fmt.Sprintf("%s %s, but %s sees no %s of them: set attributes.username to the attribute with the name "+
				"that people type, "+
				"or give that account the right to read it.",
				domains.Number(nameless, "entry matches", "entries match"),
				where, c.reader(), c.attributes["username"]))
	case builtin > 0:
		return t.failed(
			"search",
			fmt.Sprintf(
				"Only accounts that Active Directory has by itself match %s: see userFilter and userBaseDN.",
				where,
			),
		)
	}
	others := false
	if _, err := c.first(part{c.people.base, "(objectClass=*)"}, []string{"1.1"}, func(e *goldap.Entry) {
		others = others || canonical(e.DN) != canonical(c.people.base)
	}); err == nil && others {
		return t.failed(
			"search",
			fmt.Sprintf(
				"Nobody matches %s. There are other entries below it: userFilter leaves them out.", where,
			)+c.leftOut(),
		)
	}
	return t.failed(
		"search",
		fmt.Sprintf(
			"Nobody matches %s. %s sees no entry below it at all: see baseDN and userBaseDN, or give that account "+
				"the right to read there.",
			where, c.reader(),
		),
	)
}

// checkID records an error if an entry has no usable id, or one of another attribute than those
// before.
func (t *trial) checkID(c *conn, e *goldap.Entry) {
	_, attribute, err := c.idOf(e, c.ids)
	switch {
	case t.wrong != nil:
	case err != nil:
		t.wrong = err
	case t.ids != "" && t.ids != attribute:
		t.wrong = errs.New(errs.Upstream,
			"The directory %s shows the ids of people in two attributes, %s and %s (of %s): let %s see one of the "+
				"two of all, or set "+
				"idAttribute to one that all have.", c.url, t.ids, attribute, e.DN, c.reader())
	default:
		t.ids = attribute
	}
}

// nsPerson is the class of the people whom 389 Directory Server's own tools make; it is none of
// person.
const nsPerson = "(objectClass=nsPerson)"

// leftOut returns a sentence on people of the class nsPerson whom userFilter leaves out, "" for
// none.
func (c *conn) leftOut() string {
	n := 0
	if c.activeDirectory {
		return ""
	}
	if _, err := c.first(part{c.people.base, "(&" + nsPerson + "(!" + c.people.filter +
		"))"}, []string{"1.1"}, func(*goldap.Entry) {
		n++
	}); err != nil || n == 0 {
		return ""
	}
	return fmt.Sprintf(" userFilter leaves out %s of the class nsPerson, which 389 Directory Server gives to "+
		"people: set it to (|%s%s) if they should log in.",
		domains.Number(n, "entry", "entries"), c.people.filter, nsPerson)
}

// person adds the step with the user that a name would become; "" means the first person found.
func (t *trial) person(c *conn, username string) bool {
	if t.wrong != nil {
		return t.failed("person", errs.MessageOf(t.wrong))
	}
	e := t.one
	if username != "" {
		found, why, err := c.find(username)
		switch {
		case err != nil:
			return t.failed("person", errs.MessageOf(err))
		case found == nil:
			return t.failed("person", fmt.Sprintf("%q cannot log in: %s.", printable(username), why))
		}
		e = found.Entry
	}
	who, err := c.identity(e)
	if err != nil {
		return t.failed("person", errs.MessageOf(err))
	}
	text := fmt.Sprintf("%s becomes the user %q.", e.DN, who.Username)
	if who.Disabled {
		text = fmt.Sprintf(
			"%s becomes the user %q, who is disabled: the account is disabled there, or has expired.", e.DN,
			who.Username,
		)
	} else if who.Locked {
		text = fmt.Sprintf(
			"%s becomes the user %q, who is disabled until the account is no longer locked there.", e.DN,
			who.Username,
		)
	}
	t.steps = append(t.steps, domains.Step{Name: "person", OK: true, Message: text, Person: &who})
	return true
}

// groups adds the step with some of the groups of the first page.
func (t *trial) groups(c *conn, _ string) bool {
	count, builtin, nameless := 0, 0, 0
	var groups []domains.Group
	var wrong error
	more, err := c.first(c.realm.groups, c.groupAttributes(), func(e *goldap.Entry) {
		id, _, err := c.idOf(e, c.groupIDs)
		name := textOf(e, c.groupName, maxValue)
		switch {
		case c.isBuiltin(e):
			builtin++
		case err != nil:
			wrong = err
		case name == "":
			nameless++
		default:
			if count++; len(groups) < maxTestGroups {
				groups = append(groups, domains.Group{
					ID:          id,
					Name:        name,
					Description: textOf(e, "description", maxDescription),
				})
			}
		}
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return t.failed("groups", errs.MessageOf(err))
	}
	where := fmt.Sprintf("groupFilter %s below %s", c.realm.groups.filter, c.realm.groups.base)
	text := fmt.Sprintf("%s %s.", domains.Number(count, "group matches", "groups match"), where)
	switch {
	case more:
		text = "At least " + text
	case count == 0:
		text = "No group matches " + where + ": there will be no teams."
	}
	if nameless > 0 {
		text += fmt.Sprintf(" %s no %s (groupName).", domains.Number(nameless, "other has", "others have"), c.groupName)
	}
	if builtin > 0 {
		text += fmt.Sprintf(
			" Left out: %s that Active Directory has by itself (builtin).",
			domains.Number(builtin, "group", "groups"),
		)
	}
	t.steps = append(t.steps, domains.Step{Name: "groups", OK: true, Message: text, Groups: groups})
	return true
}
