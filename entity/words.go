package entity

import (
	"bytes"
	"strings"
)

// class classifies values by the names of their members.
type class int

const (
	plain        class = iota
	secret             // any value is a secret
	secrets            // any value but a number, which is a count
	environment        // all variables in the value are secrets
	environments       // as environment, if the value has variables: nodeEnv may be "production"
	pairName           // a text that classifies the value of the same object
	pairValue          // classified by that text
	suffix             // may follow the name of a secret
)

// isSecret reports whether values of the class are secrets or environments.
func (c class) isSecret() bool { return plain < c && c < pairName }

type word struct {
	letters string
	class   class
	whole   bool // it must be the whole name
}

// words are the names of secrets and their suffixes, indexed by their last two letters. MaskSecrets
// documents them.
var words = func() (by [26 * 26][]word) {
	add := func(of class, whole bool, all string) {
		for _, letters := range strings.Fields(all) {
			w, last := word{letters, of, whole}, len(letters)-1
			if of == secret && letters[last] == 's' && letters[last-1] != 's' {
				w.class = secrets
			}
			at := &by[tail(letters[last-1], letters[last])]
			*at = append(*at, w)
		}
	}
	add(secret, false,
		"password passwords passwd pwd passphrase passcode secret secrets token apikey apikeys accesskey accountkey "+
			"clientkey encryptionkey hmackey masterkey privatekey privatekeys secretkey sessionkey sharedkey "+
			"signingkey sshkey storagekey "+
			"credential credentials authorization connectionstring connstring sharedaccesssignature passwordhash "+
			"secrethash tokenhash "+
			"accesstokens apitokens authtokens refreshtokens")
	add(
		secret, true,
		"bearer cookie cookies setcookie databaseurl dsn jwt otp pass dbpass smtppass userpass pin pw tokens",
	)
	add(environment, true, "env envvars envvariables environment environmentvars environmentvariables")
	add(environments, false, "env envvars envvariables environment environments environmentvars environmentvariables")
	add(pairName, true, "header id key name")
	add(pairValue, false, "value values default")
	add(suffix, false, "base confirm confirmation content data encoded encrypted json pem string")
	return by
}()

// tail returns the index in words of those that end with two letters.
func tail(a, b byte) int { return int(a|0x20-'a')*26 + int(b|0x20-'a') }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// classOf returns the class of a name without escapes. It reads the name from its end, because any
// letters may precede a word.
func classOf(name []byte) class {
	var buffer [48]byte // longer than a word with two suffixes
	at := len(buffer)
	for i := len(name) - 1; i >= 0 && at > 0; i-- {
		switch c := name[i]; {
		case letter(c):
			at--
			buffer[at] = c | 0x20
		case c >= 0x80: // a part of a letter that is in no word
			at--
			buffer[at] = c
		}
	}
	letters := buffer[at:]
	last := wordOf(letters, true)
	for w, suffixes := last, 0; w.class >= pairValue && suffixes < 2; suffixes++ {
		letters = letters[:len(letters)-len(w.letters)]
		if w = wordOf(letters, false); w.class.isSecret() {
			return w.class
		}
	}
	if last.class == suffix {
		return plain
	}
	return last.class
}

// wordOf returns the word that letters end with, or the zero word. whole reports whether letters
// are the whole name.
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

// mayHaveSecrets reports false for JSON, valid or not, without a name that could be a secret's.
// Exports call it for all data, most of which has no secrets. It usually checks only the last
// letters of names, and is ten times faster than decoding with encoding/json (BenchmarkMaskSecrets,
// BenchmarkDecode).
func mayHaveSecrets(text []byte) bool {
	names, values := false, false // names and values that may belong to pairs
	for i := 0; ; i++ {
		colon := bytes.IndexByte(text[i:], ':')
		if colon < 0 {
			return false
		}
		i += colon
		quote := i - 1 // the end of the name
		for quote >= 0 && strings.IndexByte(space, text[quote]) >= 0 {
			quote--
		}
		if quote < 1 || text[quote] != '"' || endsLikeNoWord(text[:quote]) {
			continue
		}
		begin := bytes.LastIndexByte(text[:quote], '"') + 1
		name := text[begin:quote]
		if bytes.IndexByte(name, '\\') >= 0 || begin > 1 && text[begin-2] == '\\' {
			// it has escapes, perhaps of a quote
			return true
		}
		switch c := classOf(name); {
		case c.isSecret():
			return true
		case c == pairName:
			names = names || mayNameSecret(text[i+1:])
		case c == pairValue:
			values = true
		}
		if names && values {
			return true
		}
	}
}

// mayNameSecret reports false if a value cannot be the name of a secret.
func mayNameSecret(value []byte) bool {
	value = bytes.TrimLeft(value, space)
	if len(value) == 0 || value[0] != '"' {
		return false
	}
	name, _, _ := bytes.Cut(value[1:], []byte{'"'})
	return bytes.IndexByte(name, '\\') >= 0 || classOf(name).isSecret()
}

// endsLikeNoWord reports whether a name ends with two letters with which no word ends. Neither may
// be part of an escape, such as the f in authorizati\u006fn. An escape that includes the last
// letter but one begins at most seven bytes before the end.
func endsLikeNoWord(name []byte) bool {
	n := len(name)
	return n > 1 && letter(name[n-1]) && letter(name[n-2]) && words[tail(name[n-2], name[n-1])] == nil &&
		bytes.IndexByte(name[max(0, n-7):], '\\') < 0
}
