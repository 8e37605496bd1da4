package ldap

import (
	"context"
	"errors"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
)

// request makes a search of everything below a base. References to other servers come as results without an entry, and
// are passed over.
func request(p part, attributes []string, sizeLimit int, controls ...goldap.Control) *goldap.SearchRequest {
	return goldap.NewSearchRequest(p.base, goldap.ScopeWholeSubtree, goldap.NeverDerefAliases, sizeLimit, 0, false,
		p.filter, attributes, controls)
}

// each calls fn with every entry of a part, page by page. An error of fn ends it and is returned as it is.
func (c *conn) each(p part, attributes []string, fn func(*goldap.Entry) error) error {
	paging := goldap.NewControlPaging(c.pageSize)
	for {
		cookie, err := c.page(p, request(p, attributes, 0, paging), fn)
		if err != nil || len(cookie) == 0 {
			return err
		}
		paging.SetCookie(cookie)
	}
}

// page reads one page and returns what to ask for the next one with, nothing after the last.
func (c *conn) page(p part, r *goldap.SearchRequest, fn func(*goldap.Entry) error) ([]byte, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel() // it ends go-ldap's goroutine when fn does not want more
	c.awake()
	c.frames.settle()
	results := c.SearchAsync(ctx, r, 16)
	var end *goldap.ControlPaging
	for results.Next() {
		c.awake()
		c.frames.taken.Add(1)
		e := results.Entry()
		if e == nil {
			if control, ok := goldap.FindControl(results.Controls(), goldap.ControlTypePaging).(*goldap.ControlPaging); ok {
				end = control
			}
			continue
		}
		c.silent.Stop() // fn may take its time
		if err := fn(e); err != nil {
			return nil, err
		}
		c.awake()
	}
	// When the context or the connection ends, go-ldap may end the results without an error. So only the paging control,
	// which comes with the end of a page, says that the page was whole.
	switch {
	case end != nil && results.Err() == nil:
		return end.Cookie, nil
	case results.Err() == nil && c.ctx.Err() == nil && !c.IsClosing():
		return nil, errs.New(errs.Upstream, "The directory %s does not page its answers, so that nobody can tell whether they are whole.", c.url)
	}
	return nil, c.failed(errors.Join(results.Err(), c.GetLastError()), c.noSearch(p.base))
}

// few searches without pages. When there is more than sizeLimit, it gives an error with goldap.LDAPResultSizeLimitExceeded.
func (c *conn) few(r *goldap.SearchRequest) ([]*goldap.Entry, error) {
	c.awake()
	c.frames.settle()
	found, err := c.Search(r)
	if err != nil {
		return nil, err
	}
	return found.Entries, nil
}
