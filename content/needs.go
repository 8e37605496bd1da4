package content

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// refs returns what each of some entities needs: what its data names. That is, at any depth, a
// member "<kind>Id" with a string or "<kind>Ids" with an array of strings, such as a report's
// "datasetId", whose text is the id of an entity of that kind that exists and is neither a draft
// nor a system entity. Kinds are the ready ones and those of Options.Others. The dependencies are
// ordered by kind, as in Kinds with the others behind, then by id.
func (s *Service) refs(ctx context.Context, tenant string, some []Entity) (map[string][]entity.Key, error) {
	needs := make(map[string][]entity.Key, len(some))
	var all []entity.Key
	for _, e := range some {
		needs[e.ID] = s.named(e)
		all = append(all, needs[e.ID]...)
	}
	there, err := s.there(ctx, tenant, all)
	if err != nil {
		return nil, err
	}
	for id, keys := range needs {
		needs[id] = slices.DeleteFunc(keys, func(k entity.Key) bool { return !there[k] })
	}
	return needs, nil
}

// there returns those of some keys that name an entity which can be shipped.
func (s *Service) there(ctx context.Context, tenant string, keys []entity.Key) (map[entity.Key]bool, error) {
	there, asked := map[entity.Key]bool{}, map[entity.Key]bool{}
	var own []entity.Key
	for _, k := range keys {
		if asked[k] {
			continue
		}
		asked[k] = true
		t, elsewhere := s.other(k.Kind)
		switch {
		case !elsewhere:
			own = append(own, k)
		case t.Lookup != nil:
			ref, err := t.Lookup(ctx, tenant, k.ID)
			if err != nil && errs.CodeOf(err) != errs.NotFound {
				return nil, err
			}
			there[k] = err == nil && ref.ID == k.ID && !ref.Draft && !ref.System
		}
	}
	for batch := range transfer.Chunks(own) {
		some, err := s.store.Transferable(ctx, tenant, batch)
		if err != nil {
			return nil, err
		}
		maps.Copy(there, some)
	}
	return there, nil
}

// named returns what an entity's data names, whether it is there or not: each once, in the order of
// refs, and never itself.
func (s *Service) named(e Entity) []entity.Key {
	places := s.places()
	found := map[entity.Key]bool{}
	walk(e.Data, func(kind entity.Kind, id string) {
		if _, ok := places[kind]; ok && (kind != e.Kind || id != e.ID) &&
			escapes.StorableWithin(id, fields.MaxOwner) && id != "" {
			found[entity.Key{Kind: kind, ID: id}] = true
		}
	})
	keys := make([]entity.Key, 0, len(found))
	for k := range found {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b entity.Key) int {
		if c := places[a.Kind] - places[b.Kind]; c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return keys
}

// places returns the position of each kind in the order of refs.
func (s *Service) places() map[entity.Kind]int {
	places := map[entity.Kind]int{}
	for _, k := range Kinds() {
		places[k.Kind] = len(places)
	}
	if s.registry == nil {
		return places
	}
	for _, kind := range s.registry.Kinds() {
		if _, ok := places[kind]; !ok {
			places[kind] = len(places)
		}
	}
	return places
}

// level is one object or array that a walk is in.
type level struct {
	object bool
	key    bool        // the next token is a member's name
	kind   entity.Kind // of the strings here: of a member's value, or of the elements of an array
	many   bool        // the member's name was "<kind>Ids"
}

// walk reads JSON without recursion and tells what its members name. It looks at structure and
// strings alone, ten times as fast as json.Decoder: an export walks through all that it ships. The
// text must be valid.
func walk(text []byte, tell func(kind entity.Kind, id string)) {
	if !bytes.Contains(text, []byte("Id")) && bytes.IndexByte(text, '\\') < 0 { // no such name, nor one with escapes
		return
	}
	levels := []level{{}}
	for i := 0; i < len(text); i++ {
		at := &levels[len(levels)-1]
		switch text[i] {
		case '"':
			end := i + 1 + closing(text[i+1:])
			raw := text[i : end+1]
			i = end
			switch {
			case at.object && at.key:
				at.kind, at.many = "", false
				if bytes.HasSuffix(raw, []byte(`Id"`)) || bytes.HasSuffix(raw, []byte(`Ids"`)) ||
					bytes.IndexByte(raw, '\\') >= 0 {
					at.kind, at.many = kindOf(unquoted(raw))
				}
				at.key = false
			case at.kind != "" && !(at.object && at.many):
				tell(at.kind, unquoted(raw))
			}
		case '{':
			levels = append(levels, level{object: true, key: true})
		case '[':
			inner := level{}
			if at.object && at.many {
				inner.kind = at.kind
			}
			levels = append(levels, inner)
		case '}', ']':
			levels = levels[:len(levels)-1]
		case ',':
			at.key = at.object
		}
	}
}

// closing finds the quote that ends a string.
func closing(text []byte) int {
	for at := 0; ; {
		quote := bytes.IndexByte(text[at:], '"')
		if quote < 0 {
			return len(text) - 1 // not valid
		}
		slashes := 0
		for slashes < quote && text[at+quote-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at + quote
		}
		at += quote + 1
	}
}

func unquoted(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it is valid
	return s
}

// kindOf reads a member's name: "datasetId" is one dataset, "datasetIds" are many.
func kindOf(name string) (kind entity.Kind, many bool) {
	if k, ok := strings.CutSuffix(name, "Ids"); ok {
		return entity.Kind(k), true
	}
	k, ok := strings.CutSuffix(name, "Id")
	if !ok {
		return "", false
	}
	return entity.Kind(k), false
}
