// Package sqltext splits SQL text into tokens and statements. It understands no more of the text
// than the lexers of the databases do. The drivers of workspaces import it.
package sqltext

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Dialect is the lexical structure of a database's SQL.
type Dialect int

// The dialects.
const (
	SQLite Dialect = iota
	Postgres
)

// Kind is the kind of a token.
type Kind int

// The kinds of tokens. Comments and white space are not tokens.
const (
	Word      Kind = iota // a keyword or a plain identifier
	Quoted                // a quoted identifier; Value does not include the quotes
	String                // a string or blob
	Number                //
	Parameter             // $1, and in SQLite also ?, ?1, :name, @name, $name
	Sign                  // any other character
)

// Token is a token of SQL.
type Token struct {
	Kind  Kind
	Value string // the text; for Quoted the name
	Pos   int    // of the first byte
}

// Is reports whether the token is the given word, in upper or lower case.
func (t Token) Is(word string) bool { return t.Kind == Word && strings.EqualFold(t.Value, word) }

// Sign reports whether the token is the given character.
func (t Token) Sign(c string) bool { return t.Kind == Sign && t.Value == c }

// Statement is one statement of a text, without the semicolon after it.
type Statement struct {
	Text   string
	Line   int     // line of its first token in the whole text, from 1
	Tokens []Token // with positions in Text
}

// Keywords returns the first n words of the statement in upper case.
func (s Statement) Keywords(n int) []string {
	var words []string
	for _, t := range s.Tokens {
		if t.Sign("(") && len(words) == 0 {
			continue
		}
		if t.Kind != Word || len(words) == n {
			break
		}
		words = append(words, strings.ToUpper(t.Value))
	}
	return words
}

// Grows reports whether the statement can make a database larger. DELETE, DROP, TRUNCATE and
// statements that only read cannot.
func (s Statement) Grows() bool {
	return slices.ContainsFunc([]string{"INSERT", "UPDATE", "CREATE", "ALTER", "INTO"}, s.Has)
}

// Has reports whether the statement contains a word.
func (s Statement) Has(word string) bool {
	for _, t := range s.Tokens {
		if t.Is(word) {
			return true
		}
	}
	return false
}

// LineOf returns the line of a position in a text, from 1.
func LineOf(text string, pos int) int {
	return 1 + strings.Count(text[:min(max(pos, 0), len(text))], "\n")
}

// Split returns the statements of a text. It leaves out statements without tokens. In SQLite a
// trigger ends with its END.
// Errors: errs.Invalid for a text that is not valid UTF-8 or contains NUL, and for an unterminated
// string, identifier or comment.
func Split(d Dialect, text string) ([]Statement, error) {
	tokens, err := scan(d, text)
	if err != nil {
		return nil, err
	}
	var all []Statement
	for first := 0; first < len(tokens); {
		end := first
		for ; end < len(tokens); end++ {
			if tokens[end].Sign(";") && (d == Postgres || !trigger(tokens[first:end]) || ended(tokens[first:end])) {
				break
			}
		}
		if some := tokens[first:end]; len(some) > 0 {
			start, stop := some[0].Pos, len(text)
			if end < len(tokens) {
				stop = tokens[end].Pos
			}
			own := make([]Token, len(some))
			for i, t := range some {
				t.Pos -= start
				own[i] = t
			}
			all = append(all, Statement{
				Text:   strings.TrimRight(text[start:stop], " \t\r\n"),
				Line:   LineOf(text, start),
				Tokens: own,
			})
		}
		first = end + 1
	}
	return all, nil
}

// trigger reports whether tokens begin a CREATE TRIGGER.
func trigger(tokens []Token) bool {
	if len(tokens) < 2 || !tokens[0].Is("CREATE") {
		return false
	}
	if (tokens[1].Is("TEMP") || tokens[1].Is("TEMPORARY")) && len(tokens) > 2 {
		return tokens[2].Is("TRIGGER")
	}
	return tokens[1].Is("TRIGGER")
}

// ended reports whether the tokens of a trigger end with ; END.
func ended(tokens []Token) bool {
	n := len(tokens)
	return n > 2 && tokens[n-1].Is("END") && tokens[n-2].Sign(";")
}

type scanner struct {
	d      Dialect
	text   string
	pos    int
	tokens []Token
}

func scan(d Dialect, text string) ([]Token, error) {
	if !utf8.ValidString(text) {
		return nil, errs.New(errs.Invalid, "The SQL is not valid UTF-8.")
	}
	if strings.ContainsRune(text, 0) {
		return nil, errs.New(errs.Invalid, "The SQL has a NUL character.")
	}
	s := scanner{d: d, text: strings.TrimPrefix(text, "\ufeff")}
	if skipped := len(text) - len(s.text); skipped > 0 { // positions stay the same
		s.text, s.pos = text, skipped
	}
	for s.pos < len(s.text) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	return s.tokens, nil
}

func (s *scanner) next() error {
	rest := s.text[s.pos:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v':
		s.pos++
	case strings.HasPrefix(rest, "--"):
		s.pos += line(rest)
	case strings.HasPrefix(rest, "/*"):
		n := s.comment(rest)
		if n == 0 {
			return s.unfinished("comment")
		}
		s.pos += n
	case c == '\'':
		return s.quoted(String, '\'', 0, false)
	case c == '"':
		return s.quoted(Quoted, '"', 0, false)
	case s.d == SQLite && c == '`':
		return s.quoted(Quoted, '`', 0, false)
	case s.d == SQLite && c == '[':
		end := strings.IndexByte(rest, ']')
		if end < 0 {
			return s.unfinished("identifier")
		}
		s.tokens = append(s.tokens, Token{Quoted, rest[1:end], s.pos})
		s.pos += end + 1
	case s.d == Postgres && (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'"):
		return s.quoted(String, '\'', 1, true)
	case s.d == Postgres && (c == 'u' || c == 'U') && (strings.HasPrefix(rest[1:], "&'") ||
		strings.HasPrefix(rest[1:], "&\"")):
		kind := String
		if rest[2] == '"' {
			kind = Quoted
		}
		return s.quoted(kind, rest[2], 2, false)
	case s.d == Postgres && c == '$' && !digit(rest, 1):
		return s.dollar(rest)
	case c == '$' || s.d == SQLite && (c == '?' || (c == ':' || c == '@' || c == '#') && letter(rest, 1)):
		s.add(Parameter, 1+word(rest[1:]))
	case digit(rest, 0) || c == '.' && digit(rest, 1):
		s.add(Number, number(rest))
	case letter(rest, 0):
		s.add(Word, word(rest))
	default:
		_, size := utf8.DecodeRuneInString(rest)
		s.add(Sign, size)
	}
	return nil
}

func (s *scanner) add(kind Kind, size int) {
	s.tokens = append(s.tokens, Token{kind, s.text[s.pos : s.pos+size], s.pos})
	s.pos += size
}

func (s *scanner) unfinished(what string) error {
	return errs.New(
		errs.Invalid, "The SQL has a %s without an end, which begins in line %d.", what, LineOf(s.text, s.pos),
	)
}

// quoted reads a token that ends with a quote, after front bytes and the opening quote. A doubled
// quote does not end it, nor does one after a backslash if escapes is set.
func (s *scanner) quoted(kind Kind, quote byte, front int, escapes bool) error {
	for i := s.pos + front + 1; i < len(s.text); i++ {
		switch {
		case escapes && s.text[i] == '\\':
			i++
		case s.text[i] != quote:
		case i+1 < len(s.text) && s.text[i+1] == quote:
			i++
		default:
			value := s.text[s.pos : i+1]
			if kind == Quoted {
				q := string(quote)
				value = strings.ReplaceAll(s.text[s.pos+front+1:i], q+q, q)
			}
			s.tokens = append(s.tokens, Token{kind, value, s.pos})
			s.pos = i + 1
			return nil
		}
	}
	if kind == Quoted {
		return s.unfinished("identifier")
	}
	return s.unfinished("string")
}

// dollar reads a string of PostgreSQL between equal tags such as $$ or $body$.
func (s *scanner) dollar(rest string) error {
	n := 1
	for n < len(rest) && rest[n] != '$' && (letter(rest, n) || digit(rest, n)) {
		n++
	}
	if n == len(rest) || rest[n] != '$' {
		s.add(Sign, 1)
		return nil
	}
	tag := rest[:n+1]
	end := strings.Index(rest[len(tag):], tag)
	if end < 0 {
		return s.unfinished("string")
	}
	s.add(String, end+2*len(tag))
	return nil
}

// comment returns the length of a comment in bytes, 0 if it is not terminated. Comments of
// PostgreSQL nest. In SQLite the end of the text ends a comment.
func (s *scanner) comment(rest string) int {
	if s.d == SQLite {
		if end := strings.Index(rest[2:], "*/"); end >= 0 {
			return end + 4
		}
		return len(rest)
	}
	depth := 0
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func line(rest string) int {
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		return end
	}
	return len(rest)
}

func word(s string) int {
	n := 0
	for n < len(s) && (letter(s, n) || digit(s, n) || s[n] == '$') {
		n++
	}
	return n
}

// number returns the length of a number, including letters that follow it immediately.
func number(s string) int {
	n := 0
	for n < len(s) && (letter(s, n) || digit(s, n) || s[n] == '.' || (s[n] == '+' || s[n] == '-') && (s[n-1] == 'e' ||
		s[n-1] == 'E') && !strings.HasPrefix(s, "0x")) {
		n++
	}
	return n
}

func digit(s string, at int) bool { return at < len(s) && s[at] >= '0' && s[at] <= '9' }

func letter(s string, at int) bool {
	return at < len(s) && (s[at] >= 'a' && s[at] <= 'z' || s[at] >= 'A' && s[at] <= 'Z' || s[at] == '_' ||
		s[at] >= 0x80)
}
