package rest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// Bounds of what is said about members that a route does not know.
const (
	maxUnknownNamed = 5  // in an error
	maxUnknownTold  = 5  // in Warning headers and the log
	maxUnknownRead  = 64 // that may be misspelled
)

// RefuseUnknown returns errs.Invalid naming the members of a body that its route does not know. A
// route with Drops notes those that look misspelled instead. shown is an example of what a GET of
// the same path answers, nil for none: its members, _links and _embedded are no error in a PUT or
// PATCH, which sends back what was read.
func (r *Request) RefuseUnknown(all []jsonfill.UnknownMember, shown any) error {
	if len(all) == 0 {
		return nil
	}
	if r.Method == http.MethodPut || r.Method == http.MethodPatch {
		known, err := NewShownMembers(shown)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, known.has)
	}
	if r.Route.Drops {
		r.dropped = misspelled(all)
		return nil
	}
	if len(all) == 0 {
		return nil
	}
	texts := []string{}
	for _, m := range all[:min(len(all), maxUnknownNamed)] {
		texts = append(texts, errs.MessageOf(jsonfill.UnknownName("member", m.At, m.Name, m.Known)))
	}
	if more := len(all) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return errs.New(errs.Invalid, "%s", strings.Join(texts, "; "))
}

// misspelled returns those members that are probably misspellings of known ones.
func misspelled(all []jsonfill.UnknownMember) (out []jsonfill.UnknownMember) {
	for _, m := range all[:min(len(all), maxUnknownRead)] {
		if jsonfill.Nearest(m.Name, m.Known) != "" && len(out) < maxUnknownTold {
			out = append(out, m)
		}
	}
	return out
}

// WarnOfDropped tells in Warning headers and in the log which members were left out although they
// look misspelled.
func (r *Request) WarnOfDropped(w http.ResponseWriter, log *slog.Logger) {
	for _, m := range r.dropped {
		name, meant := jsonfill.Join(m.At, m.Name), jsonfill.Join(m.At, jsonfill.Nearest(m.Name, m.Known))
		text := fmt.Sprintf("the member %s was left out: did you mean %s?", name, meant)
		w.Header().Add("Warning", "299 - "+strconv.QuoteToASCII(text))
		log.WarnContext(r.Context(), "a member of a body was left out", "tenant", r.Who.Tenant, "user", r.Who.User,
			"method", r.Method, "path", r.URL.Path, "member", name, "meant", meant)
	}
	r.dropped = nil
}

// shownMembers are the members of what a GET answers: of an object those of its members, else nil.
type shownMembers map[string]json.RawMessage

// NewShownMembers returns the members of an example of an answer.
func NewShownMembers(example any) (shownMembers, error) {
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
func (s shownMembers) has(m jsonfill.UnknownMember) bool {
	if m.At != "" {
		for name := range strings.SplitSeq(m.At, ".") {
			var inner shownMembers
			if json.Unmarshal(s[name], &inner) != nil {
				return false
			}
			s = inner
		}
	}
	_, has := s[m.Name]
	return has
}
