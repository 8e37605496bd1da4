package comments

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/internal/fold"
)

const (
	maxSpots      = 100 // places of one message that may be mentions
	maxCandidates = 16  // names that one of them may be read as
	maxName       = 256 // bytes of a username
)

// notInNames are the visible characters that no username has (principals.ValidUsername; a test keeps both together).
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

// scan finds what may be mentions.
//
// A mention is an @ that no letter, digit, mark, _ or other @ stands before, and a username right behind it, which must have a
// letter or digit. As usernames may have punctuation and single spaces in them, what follows can be read in several ways: in
// "@jo.smith." it is jo.smith or jo, and in "@o'brien's" o'brien's, o'brien or o. So each
// beginning of the run of characters that usernames have is a candidate when it ends with the run, or before a character
// that is no letter, digit or mark; the longest that is a user counts (resolve).
//
// The first 100 spots of a message count, and of each the 16 shortest candidates, which are all of a username with up to
// 15 such characters in it. So at most 100 users are mentioned and notified; any other @ is text, and the message is kept
// as it is.
func scan(message string) []spot {
	var spots []spot
	before := ' '
	for i, r := range message {
		if r == '@' && !wordRune(before) && before != '_' && before != '@' {
			if all := candidates(message, i+1); len(all) > 0 {
				spots = append(spots, spot{at: i, candidates: all})
			}
			if len(spots) == maxSpots {
				break
			}
		}
		before = r
	}
	return spots
}

// candidates returns the names that may begin at a place of a message, longest first.
func candidates(message string, from int) []candidate {
	var all []candidate
	ends := func(end int) { // a name may end here, except for a space
		if name := message[from:end]; name[len(name)-1] != ' ' && len(all) < maxCandidates {
			all = append(all, candidate{name: name, folded: fold.Name(name), end: end})
		}
	}
	end, named := from, false // named: there was a letter or digit
	for end < len(message) {
		r, size := utf8.DecodeRuneInString(message[end:])
		if !nameRune(r) || r == ' ' && (end == from || message[end-1] == ' ') {
			break
		}
		if named && !wordRune(r) {
			ends(end)
		}
		if end-from+size > maxName { // the run is no name as a whole
			slices.Reverse(all)
			return all
		}
		named = named || unicode.IsLetter(r) || unicode.IsDigit(r)
		end += size
	}
	if named {
		ends(end)
	}
	slices.Reverse(all)
	return all
}

// wordRune reports whether r belongs to a word.
func wordRune(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.Nd) }

// nameRune reports whether a username may have r in it.
func nameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || unicode.IsGraphic(r) && !strings.ContainsRune(notInNames, r)
	}
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !fold.Invisible(r) && !strings.ContainsAny(norm.NFKC.String(string(r)), notInNames)
}

// resolve returns the users that spots mention, each once, in order of appearance. users holds exact names and display names.
// A spot inside a longer mention is part of it.
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
