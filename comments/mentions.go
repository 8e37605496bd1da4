package comments

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

const (
	maxSpots      = 100 // places of one message that may be mentions
	maxCandidates = 16  // names that one of them may be read as
	maxName       = 256 // bytes of a username
)

// notInNames are the visible characters that no username has (principals.ValidUsername; a test
// keeps both together).
const notInNames = "/\\:,;\"<>|"

// spot is one place in a message that may be a mention: an @ at the start of a word.
type spot struct {
	at         int // of the @, in bytes
	candidates []candidate
}

// candidate is a name that may be meant, longest first in its spot.
type candidate struct {
	name   string
	folded string
	end    int // in bytes
}

func (s spot) names() []string {
	names := make([]string, len(s.candidates))
	for i, c := range s.candidates {
		names[i] = c.name
	}
	return names
}

// scan finds what may be mentions: each @ at the start of a word, with a username right after it
// that has a letter or digit. The @ is not at the start of a word after a letter, digit or mark,
// but for those of scripts that are written without spaces, after a _ that belongs to a word, and
// after another @. Code, addresses and npm's names, such as @scope/package, are not mentions.
//
// The first 100 spots of a message count. So at most 100 users are mentioned and notified; any
// other @ is text, and the message is kept as it is.
func scan(message string) []spot {
	if !strings.Contains(message, "@") {
		return nil
	}
	var spots []spot
	skip := verbatim(message)
	before, word := ' ', ' ' // the character before the @, and before the _ in front of it
	for i, r := range message {
		for len(skip) > 0 && skip[0].to <= i {
			skip = skip[1:]
		}
		if r == '@' && before != '@' && !spacedRune(word) && (len(skip) == 0 || i < skip[0].from) {
			all := candidates(message, i+1)
			if unspaced(word) { // 用户@example.com is an address
				all = slices.DeleteFunc(all, func(c candidate) bool { return domainFollows(message[c.end:]) })
			}
			if len(all) > 0 {
				spots = append(spots, spot{at: i, candidates: all})
			}
			if len(spots) == maxSpots {
				break
			}
		}
		if before = r; r != '_' {
			word = r
		}
	}
	return spots
}

// candidates returns the names that may begin at a place of a message, longest first; the longest
// that is a user counts (resolve). As usernames may have punctuation and single spaces in them, a
// text can be read in several ways: "@jo.smith." is jo.smith or jo, and "@o'brien's" o'brien's,
// o'brien or o. Each beginning of the run of characters that usernames have is a candidate if it
// ends with the run, before a character that is not a letter, digit or mark, or beside one of a
// script without spaces. The 16 shortest are returned, which are all of a username with up to 15
// such characters in it.
func candidates(message string, from int) []candidate {
	var all []candidate
	ends := func(end int) { // a name may end here, except for a space
		if name := message[from:end]; name[len(name)-1] != ' ' && len(all) < maxCandidates {
			all = append(all, candidate{name: name, folded: fold.Name(name), end: end})
		}
	}
	end, named := from, false // named: there was a letter or digit
	before := ' '
	for end < len(message) && end-from <= maxName { // the run is not a name as a whole if it is longer
		r, size := utf8.DecodeRuneInString(message[end:])
		if !nameRune(r) || r == ' ' && (end == from || message[end-1] == ' ') {
			break
		}
		if named && (!wordRune(r) || !unicode.Is(unicode.M, r) && (unspaced(r) || unspaced(before))) {
			ends(end)
		}
		named = named || unicode.IsLetter(r) || unicode.IsDigit(r)
		before = r
		end += size
	}
	if named && end-from <= maxName {
		ends(end)
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return packageFollows(message[c.end:]) })
	slices.Reverse(all)
	return all
}

// packageFollows reports whether rest, after @name, goes on as the name of a package of npm does.
func packageFollows(rest string) bool {
	rest = rest[:min(len(rest), maxName)]
	end := strings.IndexFunc(rest, func(r rune) bool { return r == ' ' || !nameRune(r) })
	return end >= 0 && len(rest) > end+1 && rest[end] == '/' && asciiWord(rest[end+1])
}

// domainFollows reports whether rest, after @name, goes on as the name of a host does.
func domainFollows(rest string) bool {
	rest = strings.TrimLeftFunc(rest[:min(len(rest), maxName)], func(r rune) bool {
		return r < utf8.RuneSelf && (r == '-' || asciiWord(byte(r)))
	})
	return len(rest) > 1 && rest[0] == '.' && asciiWord(rest[1])
}

func asciiWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// wordRune reports whether r belongs to a word.
func wordRune(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.Nd) }

// spacedRune reports whether r belongs to a word of a script that puts spaces between words.
func spacedRune(r rune) bool { return wordRune(r) && !unspaced(r) }

// unspaced reports whether r belongs to a script that is written without spaces between words, or
// that joins particles to names.
func unspaced(r rune) bool {
	return r >= 0x0e00 && (r == 'ー' ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Hangul, unicode.Yi,
			unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan))
}

// nameRune reports whether a username may have r in it.
func nameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || unicode.IsGraphic(r) && !strings.ContainsRune(notInNames, r)
	}
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !fold.Invisible(r) &&
		!strings.ContainsAny(norm.NFKC.String(string(r)), notInNames)
}

// resolve returns the users that spots mention, each once, in order of appearance. users holds
// exact names and display names. A spot inside a longer mention is part of it.
func resolve(spots []spot, users map[string]*string) []Mention {
	exact := make(map[string]string, len(users))
	for name := range users {
		exact[fold.Name(name)] = name
	}
	var mentions []Mention
	end := 0
	for _, s := range spots {
		if s.at < end {
			continue
		}
		for _, c := range s.candidates {
			name, ok := exact[c.folded]
			if !ok {
				continue
			}
			end = c.end
			if !slices.ContainsFunc(mentions, func(m Mention) bool { return m.Username == name }) {
				mentions = append(mentions, Mention{Username: name, DisplayName: users[name]})
			}
			break
		}
	}
	return mentions
}
