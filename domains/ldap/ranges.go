package ldap

import (
	"strconv"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/errs"
)

// ranged is a group that has more members than it has shown. It is asked for them when all groups are known: go-ldap
// cannot have a second search within the first one.
type ranged struct {
	group *group
	dn    string
	from  int
}

// afterRange reads 0-1499, and returns 1500: where to go on; 0 after the last range, which ends with *.
func afterRange(bounds string) (int, bool) {
	_, last, ok := strings.Cut(bounds, "-")
	if last == "*" {
		return 0, ok
	}
	n, err := strconv.Atoi(last)
	return n + 1, ok && err == nil && n >= 0 && n < 1<<31
}

// rest asks for the other members of a group, range by range.
func (s *scan) rest(r ranged) error {
	for r.from > 0 {
		attribute := s.groupMember + ";range=" + strconv.Itoa(r.from) + "-*"
		ask := request(part{r.dn, "(objectClass=*)"}, []string{attribute}, 0)
		ask.Scope = goldap.ScopeBaseObject
		found, err := s.few(ask)
		if err != nil {
			return s.failed(err, s.noSearch(r.dn))
		}
		if len(found) != 1 {
			return s.noSense(r.dn)
		}
		next, err := s.members(r.group, found[0])
		if err != nil {
			return err
		}
		if next < 0 || next > 0 && next <= r.from {
			return s.noSense(r.dn)
		}
		r.from = next
	}
	return nil
}

// noSense is the error about ranges that leave open whether they are all.
func (s *scan) noSense(dn string) error {
	return errs.New(errs.Upstream, "The directory %s gives a range of members of %s that makes no sense.", s.url, dn)
}
