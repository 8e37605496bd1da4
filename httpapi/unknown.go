package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// Bounds of what is said about members that a route does not know.
const (
	maxUnknownNamed = 5  // in an error
	maxUnknownTold  = 5  // in Warning headers and the log
	maxUnknownRead  = 64 // that may be misspelled
)

// refuseUnknown returns errs.Invalid naming the members of a body that its route does not know. A
// route with Drops notes those that look misspelled instead. shown is an example of what a GET of
// the same path answers, nil for none: its members, _links and _embedded are no error in a PUT or
// PATCH, which sends back what was read.
func (r *request) refuseUnknown(all []unknownMember, shown any) error {
	if len(all) == 0 {
		return nil
	}
	if r.Method == http.MethodPut || r.Method == http.MethodPatch {
		known, err := newShownMembers(shown)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, known.has)
	}
	if r.route.Drops {
		r.dropped = misspelled(all)
		return nil
	}
	if len(all) == 0 {
		return nil
	}
	texts := []string{}
	for _, m := range all[:min(len(all), maxUnknownNamed)] {
		texts = append(texts, errs.MessageOf(unknownName("member", m.at, m.name, m.known)))
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return errs.New(errs.Invalid, "%s", strings.Join(texts, "; "))
}

// refuseOptions returns errs.Invalid for a member of an argument that a function of handlers does
// not know.
func (by *filler) refuseOptions(function string) error {
	if len(by.unknown) == 0 {
		return nil
	}
	m := by.unknown[0]
	if meant := nearest(m.name, m.known); meant != "" {
		return errs.New(errs.Invalid, "%s: unknown option %s: did you mean %s?", function, join(m.at, m.name), join(m.at, meant))
	}
	return errs.New(errs.Invalid, "%s: unknown option %.64q: it has %s", function, join(m.at, m.name), strings.Join(m.known, ", "))
}

// misspelled returns those members that are probably misspellings of known ones.
func misspelled(all []unknownMember) (out []unknownMember) {
	for _, m := range all[:min(len(all), maxUnknownRead)] {
		if nearest(m.name, m.known) != "" && len(out) < maxUnknownTold {
			out = append(out, m)
		}
	}
	return out
}

// warnOfDropped tells in Warning headers and in the log which members were left out although they
// look misspelled.
func (a *api) warnOfDropped(w http.ResponseWriter, r *request) {
	for _, m := range r.dropped {
		name, meant := join(m.at, m.name), join(m.at, nearest(m.name, m.known))
		text := fmt.Sprintf("the member %s was left out: did you mean %s?", name, meant)
		w.Header().Add("Warning", "299 - "+strconv.QuoteToASCII(text))
		a.Log.WarnContext(r.Context(), "a member of a body was left out", "tenant", r.who.Tenant, "user", r.who.User,
			"method", r.Method, "path", r.URL.Path, "member", name, "meant", meant)
	}
	r.dropped = nil
}

// shownMembers are the members of what a GET answers: of an object those of its members, else nil.
type shownMembers map[string]json.RawMessage

func newShownMembers(example any) (shownMembers, error) {
	all := shownMembers{}
	if example != nil {
		raw, err := hal.Append(nil, example)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, err
		}
	}
	all["_links"], all["_embedded"] = nil, nil
	return all, nil
}

// has reports whether a GET answers a member that a body has.
func (s shownMembers) has(m unknownMember) bool {
	if m.at != "" {
		for name := range strings.SplitSeq(m.at, ".") {
			var inner shownMembers
			if json.Unmarshal(s[name], &inner) != nil {
				return false
			}
			s = inner
		}
	}
	_, has := s[m.name]
	return has
}
