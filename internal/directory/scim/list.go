package scim

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/principals"
)

// MaxCount is the most resources of a page. DefaultCount applies if the client sends no count.
const (
	MaxCount     = 200
	DefaultCount = 100
)

const (
	maxScanned = 20_000 // rows that are read for a filter without an index
	maxSorted  = 20_000 // matches that can be sorted
	maxLookups = 16     // ids in comparisons of members in a filter
)

// Query selects the resources of a page.
type Query struct {
	Filter     string // "": all
	SortBy     string // "": ordered by name
	Descending bool
	Start      int // index of the first one, from 1; smaller values mean 1
	Count      int // most resources; negative values mean 0
}

// Page is a part of a list.
type Page[T any] struct {
	Items        []T
	Total, Start int
}

// window returns the offset and limit of a query.
func (q Query) window() (offset, limit int) {
	return max(q.Start, 1) - 1, max(0, min(q.Count, MaxCount))
}

// listing describes how the resources of one type are listed.
type listing[T any] struct {
	kinds  kinds
	page   func(offset, limit int) ([]T, int, error)
	each   func(func(T) bool) error
	find   func(by Key, value string) ([]T, error)
	among  func(id string) (func(resource) bool, error) // whether a resource has a member, or is one of a group
	filled func(*T) resource
}

// list returns the page of a query.
func list[T any](q Query, l listing[T]) (page Page[T], err error) {
	offset, limit := q.window()
	page = Page[T]{Items: []T{}, Start: offset + 1}
	e := &evaluator{kinds: l.kinds}
	if q.Filter != "" {
		if e.filter, err = parseFilter(q.Filter); err != nil {
			return page, err
		}
		if err = l.kinds.check(e.filter); err != nil {
			return page, err
		}
	}
	by, err := sorter[T](q, l)
	if err != nil {
		return page, err
	}
	if e.filter == nil && by == nil {
		page.Items, page.Total, err = l.page(offset, limit)
		return page, err
	}
	if err := l.lookUp(e); err != nil {
		return page, err
	}
	found, total, err := l.matching(e, by, offset, limit)
	page.Total = total
	if err == nil && found != nil {
		page.Items = found
	}
	return page, err
}

// lookUp resolves the comparisons of members.
func (l listing[T]) lookUp(e *evaluator) error {
	e.among = map[*filter]func(resource) bool{}
	return e.filter.each(func(f *filter) error {
		if kind, _ := l.kinds.of(f.path); kind != members {
			return nil
		}
		if len(e.among) == maxLookups {
			return invalid(TooMany, "filter: it compares more than %d members or groups", maxLookups)
		}
		e.among[f] = func(resource) bool { return false }
		id, ok := uuids.Parse(f.value.(string))
		if !ok {
			return nil
		}
		among, err := l.among(id)
		e.among[f] = among
		return err
	})
}

// matching returns the resources that match, ordered by by or, if it is nil, by name, and the
// number of all matches.
func (l listing[T]) matching(e *evaluator, by func(a, b T) int, offset, limit int) (found []T, total int, err error) {
	take := func(v T) error {
		if !e.matches(l.filled(&v)) {
			return nil
		}
		if total++; by != nil && total > maxSorted {
			return invalid(TooMany, "more than %d resources match, too many to be sorted", maxSorted)
		}
		if by != nil || total > offset && len(found) < limit {
			found = append(found, v)
		}
		return nil
	}
	if some, indexed, err := l.indexed(e.filter); indexed {
		if len(some) > maxScanned {
			err = cmp.Or(err, tooManyToLookAt())
		}
		for _, v := range some {
			err = cmp.Or(err, take(v))
		}
		if err != nil {
			return nil, 0, err
		}
	} else {
		rows, failed := 0, error(nil)
		err := l.each(func(v T) bool {
			if rows++; rows > maxScanned {
				failed = tooManyToLookAt()
			} else {
				failed = take(v)
			}
			return failed == nil
		})
		if err = cmp.Or(failed, err); err != nil {
			return nil, 0, err
		}
	}
	if by != nil {
		slices.SortStableFunc(found, by)
		found = found[min(offset, len(found)):min(offset+limit, len(found))]
	}
	return found, total, nil
}

func tooManyToLookAt() error {
	return invalid(
		TooMany,
		"filter: more than %d resources have to be looked at: compare id, externalId, userName, emails.value or "+
			"the displayName of a group with eq",
		maxScanned,
	)
}

// indexed returns resources that include all matches of a filter, if they can be found with an
// index. ok is false otherwise.
func (l listing[T]) indexed(f *filter) (all []T, ok bool, err error) {
	var by Key
	var value string
	f.required(func(f *filter) {
		text, isText := f.value.(string)
		if f.op != "eq" || !isText || ok && by != ByEmail {
			return
		}
		switch f.path.String() {
		case "id":
			by, value, ok = ByID, text, true
		case "externalid":
			by, value, ok = ByExternalID, text, true
		case "username":
			by, value, ok = ByName, fold.Name(text), true
		case "emails", "emails.value":
			if isASCII(text) {
				by, value, ok = ByEmail, text, true
			}
		case "displayname":
			if l.kinds["members"] == members { // of a group
				by, value, ok = ByName, text, true
			}
		}
	})
	if !ok || by == ByExternalID && value == "" {
		return nil, ok, nil
	}
	if by == ByID {
		id, isID := uuids.Parse(value)
		if !isID || id != value {
			return nil, true, nil
		}
	}
	all, err = l.find(by, value)
	return all, true, err
}

// isASCII reports whether every database compares a text without case in the same way as a filter.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// sorter returns the order of a query, or nil for that of the names.
func sorter[T any](q Query, l listing[T]) (func(a, b T) int, error) {
	if q.SortBy == "" {
		return nil, nil
	}
	path, ok := parsePath(q.SortBy)
	of, known := l.kinds.of(path)
	if !ok || !known || of == members || of == reference {
		return nil, invalid(InvalidPath, "sortBy: resources cannot be sorted by %s", shown(q.SortBy))
	}
	return func(a, b T) int {
		var x, y any
		if of != unstored {
			x, y = l.filled(&a).value(path), l.filled(&b).value(path)
		}
		by := compareValues(of, x, y)
		if q.Descending {
			by = -by
		}
		return by
	}, nil
}

// compareValues orders two values of an attribute. A missing value is last.
func compareValues(of kind, x, y any) int {
	switch {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	}
	switch x := x.(type) {
	case bool:
		if x == y.(bool) {
			return 0
		} else if x {
			return 1
		}
		return -1
	case time.Time:
		return x.Compare(y.(time.Time))
	}
	return cmp.Compare(folded(of, x.(string)), folded(of, y.(string)))
}

// Users returns a page of the users of the client's domain, with their groups if groups is set.
// Errors: errs.Invalid with a scimType.
func (s *Service) Users(ctx context.Context, c Client, q Query, groups bool) (Page[User], error) {
	people, err := list(q, listing[Person]{
		kinds: userKinds,
		page: func(offset, limit int) ([]Person, int, error) {
			return s.o.Store.PeoplePage(ctx, c.Tenant, c.Domain, offset, limit)
		},
		each: func(each func(Person) bool) error { return s.o.Store.EachPerson(ctx, c.Tenant, c.Domain, each) },
		find: func(by Key, value string) ([]Person, error) {
			all, err := s.o.Store.People(ctx, c.Tenant, c.Domain, by, value)
			return slices.DeleteFunc(all, func(p Person) bool { return p.Gone }), err
		},
		among: func(id string) (func(resource) bool, error) {
			names := map[string]bool{}
			if _, err := s.team(ctx, c, id); err != nil {
				return inSet(names), exceptMissing(err)
			}
			all, err := s.o.Store.GroupMembers(ctx, c.Tenant, c.Domain, []string{id})
			for _, m := range all {
				names[m.Username] = true
			}
			return inSet(names), err
		},
		filled: func(p *Person) resource { u := userOf(*p); return &u },
	})
	if err == nil {
		err = identify(ctx, s, c, people.Items, personID)
	}
	if err != nil {
		return Page[User]{}, err
	}
	users := Page[User]{Items: make([]User, len(people.Items)), Total: people.Total, Start: people.Start}
	for i, p := range people.Items {
		users.Items[i] = userOf(p)
	}
	if groups {
		err = s.addGroups(ctx, c, users.Items)
	}
	return users, err
}

// inSet returns a function that reports whether the name of a user, or the id of a group, is in a
// set.
func inSet(set map[string]bool) func(resource) bool {
	return func(r resource) bool {
		if u, ok := r.(*User); ok {
			return set[u.UserName]
		}
		return set[r.(*Group).ID]
	}
}

// exceptMissing returns nil for errs.NotFound and other errors unchanged.
func exceptMissing(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	return err
}

// Groups returns a page of the groups of the client's domain, with their members if members is set;
// the page may end early then. Errors: errs.Invalid with a scimType.
func (s *Service) Groups(ctx context.Context, c Client, q Query, members bool) (Page[Group], error) {
	teams, err := list(q, listing[principals.Team]{
		kinds: groupKinds,
		page: func(offset, limit int) ([]principals.Team, int, error) {
			return s.o.Store.GroupsPage(ctx, c.Tenant, c.Domain, offset, limit)
		},
		each: func(each func(principals.Team) bool) error { return s.o.Store.EachGroup(ctx, c.Tenant, c.Domain, each) },
		find: func(by Key, value string) ([]principals.Team, error) {
			all, err := s.o.Store.Groups(ctx, c.Tenant, c.Domain, by, value)
			return slices.DeleteFunc(all, func(t principals.Team) bool { return t.DirectoryGone }), err
		},
		among: func(id string) (func(resource) bool, error) {
			ids := map[string]bool{}
			p, err := s.person(ctx, c, id)
			if err != nil {
				return inSet(ids), exceptMissing(err)
			}
			all, err := s.o.Store.UserGroups(ctx, c.Tenant, c.Domain, []string{p.Username})
			for _, m := range all {
				ids[m.TeamID] = true
			}
			return inSet(ids), err
		},
		filled: func(t *principals.Team) resource { g := groupOf(*t); return &g },
	})
	if err != nil {
		return Page[Group]{}, err
	}
	groups := Page[Group]{Items: make([]Group, len(teams.Items)), Total: teams.Total, Start: teams.Start}
	for i, t := range teams.Items {
		groups.Items[i] = groupOf(t)
	}
	if members {
		groups.Items, err = s.addMembers(ctx, c, groups.Items)
	}
	return groups, err
}
