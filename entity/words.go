package entity

import (
	"bytes"
	"strings"
)

// class classifies values by the names of their members.
type class int

const (
	plain       class = iota
	secret            // whatever the value is
	manySecrets       // a number is a count of them
	environment
	environments // where texts set something: a nodeEnv is production
	titling      // the name of a pair
	valued       // classified by the name of its pair
	ending       // a suffix without a class of its own
)

// hidden reports whether values are secrets.
func (c class) hidden() bool { return plain < c && c < titling }

type word struct {
	letters string
	class   class
	whole   bool // nothing stands before or behind it
}

// words are the names of secrets, and what may stand behind them, by their last two letters. MaskSecrets documents them.
var words = func() (by [26 * 26][]word) {
	add := func(of class, whole bool, all string) {
		for _, letters := range strings.Fields(all) {
			w, last := word{letters, of, whole}, len(letters)-1
			if of == secret && letters[last] == 's' && letters[last-1] != 's' {
				w.class = manySecrets
			}
			at := &by[tail(letters[last-1], letters[last])]
			*at = append(*at, w)
		}
	}
	add(secret, false, "password passwords passwd pwd passphrase passcode secret secrets token apikey apikeys accesskey accountkey "+
		"clientkey encryptionkey hmackey masterkey privatekey privatekeys secretkey sessionkey sharedkey signingkey sshkey storagekey "+
		"credential credentials authorization connectionstring connstring sharedaccesssignature passwordhash secrethash tokenhash "+
		"accesstokens apitokens authtokens refreshtokens")
	add(secret, true, "bearer cookie cookies setcookie databaseurl dsn jwt otp pass dbpass smtppass userpass pin pw tokens")
	add(environment, true, "env envvars envvariables environment environmentvars environmentvariables")
	add(environments, false, "env envvars envvariables environment environments environmentvars environmentvariables")
	add(titling, true, "header id key name")
	add(valued, false, "value values default")
	add(ending, false, "base confirm confirmation content data encoded encrypted json pem string")
	return by
}()

func tail(a, b byte) int { return int(a|0x20-'a')*26 + int(b|0x20-'a') }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// classOf reads a name that has no escapes.
func classOf(name []byte) class {
	var buffer [48]byte // longer than a word with two endings
	at := len(buffer)
	for i := len(name) - 1; i >= 0 && at > 0; i-- {
		switch c := name[i]; {
		case letter(c):
			at--
			buffer[at] = c | 0x20
		case c >= 0x80: // a letter of no word
			at--
			buffer[at] = c
		}
	}
	letters := buffer[at:]
	last := wordOf(letters, true)
	for w, endings := last, 0; w.class >= valued && endings < 2; endings++ {
		letters = letters[:len(letters)-len(w.letters)]
		if w = wordOf(letters, false); w.class.hidden() {
			return w.class
		}
	}
	if last.class == ending {
		return plain
	}
	return last.class
}

// wordOf finds the word that letters end with, which is plain when there is none.
func wordOf(letters []byte, whole bool) word {
	n := len(letters)
	if n < 2 || letters[n-1] >= 0x80 || letters[n-2] >= 0x80 {
		return word{}
	}
	for _, w := range words[tail(letters[n-2], letters[n-1])] {
		begin := n - len(w.letters)
		if begin >= 0 && (!w.whole || whole && begin == 0) && string(letters[begin:]) == w.letters {
			return w
		}
	}
	return word{}
}

// suspicious reports false, as fast as it can, when JSON has no name that could be a secret's.
func suspicious(text []byte) bool {
	titles, values := false, false // that could make pairs
	for i := 0; ; i++ {
		colon := bytes.IndexByte(text[i:], ':')
		if colon < 0 {
			return false
		}
		i += colon
		end := i - 1
		for end >= 0 && strings.IndexByte(space, text[end]) >= 0 {
			end--
		}
		if end < 1 || text[end] != '"' || innocent(text[:end]) {
			continue
		}
		begin := bytes.LastIndexByte(text[:end], '"') + 1
		name := text[begin:end]
		if bytes.IndexByte(name, '\\') >= 0 || begin > 1 && text[begin-2] == '\\' {
			return true
		}
		switch c := classOf(name); {
		case c.hidden():
			return true
		case c == titling:
			titles = titles || telling(text[i+1:])
		case c == valued:
			values = true
		}
		if titles && values {
			return true
		}
	}
}

// telling reports false when a text, behind a colon, cannot be the name of a secret.
func telling(text []byte) bool {
	text = bytes.TrimLeft(text, space)
	if len(text) == 0 || text[0] != '"' {
		return false
	}
	title, _, _ := bytes.Cut(text[1:], []byte{'"'})
	return bytes.IndexByte(title, '\\') >= 0 || classOf(title).hidden()
}

// innocent reports whether a name ends with two letters that no word ends with. Neither may be of an escape, as the f in
// authorizati\u006fn is: one that the last letter but one is of begins seven bytes before the end at most.
func innocent(name []byte) bool {
	n := len(name)
	return n > 1 && letter(name[n-1]) && letter(name[n-2]) && words[tail(name[n-2], name[n-1])] == nil &&
		bytes.IndexByte(name[max(0, n-7):], '\\') < 0
}
