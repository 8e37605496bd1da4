package ldap

import (
	"strconv"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
)

// ranged is a group with members that are still to be read. They are read after all groups, as
// go-ldap cannot search within a search.
type ranged struct {
	group *group
	conn  *conn // to the host that has it
	dn    string
	from  int
}

// afterRange returns where the range after bounds begins: 1500 for 0-1499, and 0 for the last one,
// which ends with *.
func afterRange(bounds string) (int, bool) {
	_, last, ok := strings.Cut(bounds, "-")
	if last == "*" {
		return 0, ok
	}
	n, err := strconv.Atoi(last)
	return n + 1, ok && err == nil && n >= 0 && n < 1<<31
}

// rest reads the other members of a group, range by range.
func (s *scan) rest(r ranged) error {
	for r.from > 0 {
		attribute := s.groupMember + ";range=" + strconv.Itoa(r.from) + "-*"
		search := request(part{r.dn, "(objectClass=*)"}, []string{attribute}, 0)
		search.Scope = goldap.ScopeBaseObject
		found, _, err := r.conn.few(search)
		if err != nil {
			return r.conn.failed(err, r.conn.noSearch(r.dn))
		}
		if len(found) != 1 {
			return s.badRange(r.dn)
		}
		next, err := s.members(r.group, found[0])
		if err != nil {
			return err
		}
		if next < 0 || next > 0 && next <= r.from {
			return s.badRange(r.dn)
		}
		r.from = next
	}
	return nil
}

// badRange returns the error for ranges that may be incomplete.
func (s *scan) badRange(dn string) error {
	return errs.New(errs.Upstream, "The directory %s returns an invalid range of members of %s.", s.url, dn)
}
