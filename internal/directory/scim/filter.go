package scim

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Limits of a filter.
const (
	maxFilter = 8 << 10 // bytes
	maxDepth  = 32      // of parentheses and brackets
)

// filter is a filter, or a part of one: a comparison, or an operator with its operands.
type filter struct {
	op          string  // and, or, not, or that of a comparison: eq ne co sw ew gt ge lt le pr
	left, right *filter // operands of and and or; not has only left
	path        Path
	value       any // of a comparison: a string, a float64, a bool, or nil for null
}

// parseFilter parses a filter (RFC 7644, section 3.4.2.2). It also accepts emails[type eq
// "work"].value eq "x", which providers send.
func parseFilter(text string) (*filter, error) {
	if len(text) > maxFilter {
		return nil, invalid(InvalidFilter, "filter must have at most %d bytes", maxFilter)
	}
	p := &parser{text: text}
	f, err := p.either("")
	if err == nil && p.rest() != "" {
		err = p.expected("and, or, or the end")
	}
	return f, err
}

// parser parses a filter, or the path of a change.
type parser struct {
	text  string
	at    int // offset
	depth int
}

// rest returns the text that was not read yet, without the spaces at its beginning.
func (p *parser) rest() string {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	return p.text[p.at:]
}

// expected returns the error for a text that continues in an invalid way.
func (p *parser) expected(what string) error {
	rest := p.rest()
	if rest == "" {
		return invalid(InvalidFilter, "filter: expected %s at its end", what)
	}
	return invalid(
		InvalidFilter, "filter: expected %s at character %d: %s", what, len([]rune(p.text[:p.at]))+1,
		shown(rest),
	)
}

// word reads a keyword, in any case, that is not followed by a letter.
func (p *parser) word(w string) bool {
	rest := p.rest()
	if len(rest) < len(w) || lower(rest[:len(w)]) != w || len(rest) > len(w) &&
		!strings.ContainsRune(" ()[]\"", rune(rest[len(w)])) {
		return false
	}
	p.at += len(w)
	return true
}

// sign reads one character.
func (p *parser) sign(c byte) bool {
	if rest := p.rest(); rest == "" || rest[0] != c {
		return false
	}
	p.at++
	return true
}

// inside calls read for the text between two characters, the first of which has been read.
func (p *parser) inside(end byte, read func() (*filter, error)) (*filter, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, invalid(InvalidFilter, "filter must have at most %d parentheses in each other", maxDepth)
	}
	f, err := read()
	p.depth--
	if err == nil && !p.sign(end) {
		err = p.expected(string(rune(end)))
	}
	return f, err
}

// either reads operands joined by or. Inside of brackets, of is the attribute before them.
func (p *parser) either(of string) (*filter, error) {
	return p.joined("or", func() (*filter, error) {
		return p.joined("and", func() (*filter, error) { return p.operand(of) })
	})
}

func (p *parser) joined(op string, next func() (*filter, error)) (*filter, error) {
	f, err := next()
	for err == nil && p.word(op) {
		joined := &filter{op: op, left: f}
		joined.right, err = next()
		f = joined
	}
	return f, err
}

func (p *parser) operand(of string) (*filter, error) {
	group := func() (*filter, error) { return p.either(of) }
	before := p.at
	if p.word("not") {
		if p.sign('(') {
			f, err := p.inside(')', group)
			return &filter{op: "not", left: f}, err
		}
		p.at = before
	}
	if p.sign('(') {
		return p.inside(')', group)
	}
	path, err := p.path(of)
	if err != nil {
		return nil, err
	}
	if of == "" && p.sign('[') {
		return p.selected(path)
	}
	return p.comparison(path)
}

// selected reads what follows the bracket of emails[type eq "work"], and a comparison of a part, if
// any.
func (p *parser) selected(path Path) (*filter, error) {
	if path.Sub != "" {
		return nil, invalid(InvalidFilter, "filter: %s has no parts", path)
	}
	f, err := p.inside(']', func() (*filter, error) { return p.either(path.Attribute) })
	if err != nil {
		return nil, err
	}
	if path.Attribute != "members" && path.Attribute != "groups" { // which can only be compared with eq
		f = &filter{op: "and", left: &filter{op: "pr", path: path}, right: f}
	}
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		sub, err := p.path(path.Attribute)
		if err != nil {
			return nil, err
		}
		compared, err := p.comparison(sub)
		return &filter{op: "and", left: f, right: compared}, err
	}
	return f, nil
}

// path reads the path of an attribute. of is the attribute of which it is a part, or "".
func (p *parser) path(of string) (Path, error) {
	rest := p.rest()
	end := strings.IndexAny(rest, " ()[]\"")
	if end < 0 {
		end = len(rest)
	}
	path, ok := parsePath(rest[:end])
	if !ok || path.Attribute == "" || of != "" && path.Sub != "" {
		return Path{}, p.expected("the name of an attribute")
	}
	p.at += end
	if of != "" {
		path = Path{Attribute: of, Sub: path.Attribute}
	}
	return path, nil
}

var operators = []string{"eq", "ne", "co", "sw", "ew", "gt", "ge", "lt", "le"}

func (p *parser) comparison(path Path) (*filter, error) {
	if p.word("pr") {
		return &filter{op: "pr", path: path}, nil
	}
	for _, op := range operators {
		if p.word(op) {
			value, err := p.value()
			return &filter{op: op, path: path, value: value}, err
		}
	}
	return nil, p.expected("one of eq ne co sw ew gt ge lt le pr")
}

// value reads a text as in JSON, a number, true, false or null.
func (p *parser) value() (any, error) {
	rest := p.rest()
	if strings.HasPrefix(rest, `"`) {
		end := 1
		for end < len(rest) && rest[end] != '"' {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		var text string
		if end >= len(rest) || json.Unmarshal([]byte(rest[:end+1]), &text) != nil || strings.ContainsRune(text, 0) {
			return nil, p.expected("a text in quotes")
		}
		p.at += end + 1
		return text, nil
	}
	for word, value := range map[string]any{"true": true, "false": false, "null": nil} {
		if p.word(word) {
			return value, nil
		}
	}
	end := strings.IndexAny(rest+" ", " )]")
	n, err := strconv.ParseFloat(rest[:end], 64)
	if err != nil || rest[0] > '9' || rest[0] == '+' {
		return nil, p.expected("a text in quotes, a number, true, false or null")
	}
	p.at += end
	return n, nil
}

// each calls do with every comparison of a filter.
func (f *filter) each(do func(*filter) error) error {
	if f == nil {
		return nil
	}
	switch f.op {
	case "and", "or", "not":
		if err := f.left.each(do); err != nil {
			return err
		}
		return f.right.each(do)
	}
	return do(f)
}

// required calls do with the comparisons that all matches meet.
func (f *filter) required(do func(*filter)) {
	switch {
	case f == nil || f.op == "or" || f.op == "not":
	case f.op == "and":
		f.left.required(do)
		f.right.required(do)
	default:
		do(f)
	}
}
