package aiinstr

import (
	"context"
	"regexp"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// The limits of Expand.
const (
	maxDepth    = 10
	maxExpanded = 1 << 20
	// maxRead bounds what one expansion reads, the text included. References are short, so a result
	// that fits maxExpanded practically never needs so much.
	maxRead = 4 * maxExpanded
)

// reference matches the slug in ${…}. One of UUID form names no instruction; it is reported as
// unknown.
var reference = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// part is a part of a text: literal text, or a reference when slug is not "".
type part struct{ literal, slug string }

// parse splits a text. "${slug}" is a reference and "$${slug}" the literal "${slug}", if the slug
// is valid; everything else is literal.
func parse(text string) []part {
	var parts []part
	literal := func(s string) {
		if s != "" {
			parts = append(parts, part{literal: s})
		}
	}
	from := 0 // text[from:] is not in parts yet
	for at := 0; at < len(text); {
		n := strings.IndexByte(text[at:], '$')
		if n < 0 {
			break
		}
		at += n
		escaped := strings.HasPrefix(text[at:], "$${")
		open := at
		if escaped {
			open++
		}
		slug := slugAt(text[open:])
		switch {
		case slug == "":
			at++
		case escaped:
			literal(text[from:at])
			at = open + len(slug) + len("${}")
			from = open
		default:
			literal(text[from:at])
			parts = append(parts, part{slug: slug})
			at = open + len(slug) + len("${}")
			from = at
		}
	}
	literal(text[from:])
	return parts
}

// slugAt returns the slug of the reference that text begins with, "" for none.
func slugAt(text string) string {
	if !strings.HasPrefix(text, "${") {
		return ""
	}
	const longest = len("${") + 128 + len("}")
	end := strings.IndexByte(text[:min(len(text), longest)], '}')
	if end < 0 || !reference.MatchString(text[2:end]) {
		return ""
	}
	return text[2:end]
}

// Expand replaces each ${slug} in a text by the content of the instruction with that slug, in which
// references are replaced as well. $${slug} is a literal ${slug}. A reference to no instruction
// stays as it is, and unknown has its slug once, in the order they were met. It makes one query for
// each depth of references, not for each reference.
//
// Errors: as Allowed; errs.Invalid for a text of more than 4 MiB, for a result of more than 1 MiB,
// for references more than 10 deep and for a cycle of references, naming it.
func (s *Service) Expand(ctx context.Context, text string) (expanded string, unknown []string, err error) {
	a, err := s.Allowed(ctx)
	if err != nil {
		return "", nil, err
	}
	if len(text) > maxRead {
		return "", nil, tooLong()
	}
	e := expansion{
		texts: map[string][]part{"": parse(text)},
		known: map[string]bool{},
		asked: map[string]bool{},
		nodes: map[string]*node{},
	}
	read := len(text)
	for wave, depth := e.ask(""), 1; len(wave) > 0; depth++ {
		if depth > maxDepth+1 {
			return "", nil, tooDeep()
		}
		contents, err := s.store.Contents(ctx, a.Tenant, wave, maxRead-read)
		if err != nil {
			return "", nil, err
		}
		var next []string
		for _, slug := range wave {
			content, ok := contents[slug]
			if !ok {
				unknown = append(unknown, slug)
				continue
			}
			read += len(content)
			e.known[slug], e.texts[slug] = true, parse(content)
			next = append(next, e.ask(slug)...)
		}
		wave = next
	}
	whole, err := e.visit("", nil)
	if err != nil {
		return "", nil, err
	}
	return whole.text, unknown, nil
}

// expansion is one running Expand. The text itself has the slug "".
type expansion struct {
	texts map[string][]part
	asked map[string]bool
	known map[string]bool
	nodes map[string]*node // the results of visit; nil while it runs
}

// node is an expanded text and how deep its references go.
type node struct {
	text  string
	depth int
}

// ask returns the references of a text that have not been read yet.
func (e *expansion) ask(slug string) (fresh []string) {
	for _, p := range e.texts[slug] {
		if p.slug != "" && !e.asked[p.slug] {
			e.asked[p.slug] = true
			fresh = append(fresh, p.slug)
		}
	}
	return fresh
}

// visit expands a text. Each text is expanded once, however often it is included, and none becomes
// longer than the limit.
func (e *expansion) visit(slug string, path []string) (*node, error) {
	if n, ok := e.nodes[slug]; ok {
		if n == nil {
			return nil, circle(append(path, slug))
		}
		return n, nil
	}
	e.nodes[slug] = nil
	if slug != "" {
		path = append(path, slug)
	}
	n, length := &node{}, 0
	pieces := make([]string, len(e.texts[slug]))
	for i, p := range e.texts[slug] {
		switch {
		case p.slug == "":
			pieces[i] = p.literal
		case !e.known[p.slug]:
			pieces[i] = "${" + p.slug + "}"
		default:
			inner, err := e.visit(p.slug, path)
			if err != nil {
				return nil, err
			}
			pieces[i], n.depth = inner.text, max(n.depth, inner.depth+1)
		}
		if length += len(pieces[i]); length > maxExpanded {
			return nil, tooLong()
		}
	}
	if n.depth > maxDepth {
		return nil, tooDeep()
	}
	n.text = strings.Join(pieces, "")
	e.nodes[slug] = n
	return n, nil
}

// circle returns the error for a cycle of references; path ends where it closes.
func circle(path []string) error {
	last := path[len(path)-1]
	for path[0] != last {
		path = path[1:]
	}
	if len(path) > 12 {
		path = append(append(append([]string{}, path[:6]...), "…"), path[len(path)-5:]...)
	}
	return errs.New(errs.Invalid, "The instructions refer to each other in a circle: %s", strings.Join(path, " → "))
}

func tooDeep() error {
	return errs.New(errs.Invalid, "The references to instructions go more than %d deep.", maxDepth)
}

func tooLong() error {
	return errs.New(errs.Invalid, "The expanded text would have more than %d bytes.", maxExpanded)
}
