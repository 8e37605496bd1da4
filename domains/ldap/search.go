package ldap

import (
	"context"
	"errors"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
)

// request returns a search of the whole subtree of a base.
func request(p part, attributes []string, sizeLimit int, controls ...goldap.Control) *goldap.SearchRequest {
	return goldap.NewSearchRequest(p.base, goldap.ScopeWholeSubtree, goldap.NeverDerefAliases, sizeLimit, 0, false,
		p.filter, attributes, controls)
}

// each calls fn for every entry of a part, page by page, until fn returns an error, which it
// returns as it is.
func (c *conn) each(p part, attributes []string, fn func(from *conn, e *goldap.Entry) error) error {
	return c.search(p, func(t target) (referrals []string, err error) {
		paging := goldap.NewControlPaging(t.pageSize)
		for {
			search := request(part{t.base, p.filter}, attributes, 0, paging)
			search.Scope = t.scope
			cookie, some, err := t.page(search, func(e *goldap.Entry) error { return fn(t.conn, e) })
			referrals = append(referrals, some...)
			if err != nil || len(cookie) == 0 {
				return referrals, err
			}
			if len(referrals) > maxReferrals {
				referrals = referrals[:maxReferrals]
			}
			paging.SetCookie(cookie)
		}
	})
}

// page reads one page, and returns the cookie of the next one, empty after the last, with the
// referrals among the results.
func (c *conn) page(
	r *goldap.SearchRequest, fn func(*goldap.Entry) error,
) (cookie []byte, referrals []string, err error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel() // ends go-ldap's goroutine when fn returns an error
	c.resetTimeout()
	defer c.silent.Stop()
	c.frames.settle()
	results := c.SearchAsync(ctx, r, 16)
	var end *goldap.ControlPaging
	for results.Next() {
		c.resetTimeout()
		c.frames.taken.Add(1)
		e := results.Entry()
		if e == nil {
			if referral := results.Referral(); referral != "" && len(referrals) < maxReferrals {
				referrals = append(referrals, referral)
			}
			if control, ok := goldap.FindControl(
				results.Controls(), goldap.ControlTypePaging,
			).(*goldap.ControlPaging); ok {
				end = control
			}
			continue
		}
		c.silent.Stop() // fn may take its time
		if err := fn(e); err != nil {
			return nil, nil, err
		}
		c.resetTimeout()
	}
	// When the context or the connection ends, go-ldap may end the results without an error. A page
	// is complete only if the paging control has arrived, which comes with its end.
	switch {
	case end != nil && results.Err() == nil:
		return end.Cookie, referrals, nil
	case results.Err() == nil && c.ctx.Err() == nil && !c.IsClosing():
		return nil, nil, errs.New(
			errs.Upstream,
			"The directory %s does not support paged results, so that its answers may be incomplete.", c.url,
		)
	}
	return nil, nil, c.failed(errors.Join(results.Err(), c.GetLastError()), c.noSearch(r.BaseDN))
}

// few searches without pages. If there are more entries than sizeLimit, it returns an error with
// goldap.LDAPResultSizeLimitExceeded.
func (c *conn) few(r *goldap.SearchRequest) (found []*goldap.Entry, referrals []string, err error) {
	c.resetTimeout()
	defer c.silent.Stop()
	c.frames.settle()
	result, err := c.Search(r)
	if err != nil {
		return nil, nil, err
	}
	return result.Entries, result.Referrals, nil
}
