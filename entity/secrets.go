package entity

import (
	"bytes"
	"encoding/json"
)

// Mask replaces a secret of an entity in a row.
//
// A secret is, at any depth, the value of a member with one of the names below. Only letters count,
// in either case, so that "API-Key 2" is apikey. Secret names end with:
//
//   - password(s), passwd, pwd, passphrase, passcode, secret(s), token, apikey(s), accesskey,
//     accountkey, clientkey, encryptionkey, hmackey, masterkey, privatekey(s), secretkey,
//     sessionkey, sharedkey, signingkey, sshkey, storagekey, credential(s), authorization,
//     connectionstring, connstring or sharedaccesssignature,
//   - passwordhash, secrethash or tokenhash,
//   - accesstokens, apitokens, authtokens or refreshtokens,
//   - one of these followed by one or two of base, confirm, confirmation, content, data, default,
//     encoded, encrypted, json, pem, string and value(s).
//
// The whole names bearer, cookie(s), setcookie, databaseurl, dsn, jwt, otp, pass, dbpass, smtppass,
// userpass, pin, pw and tokens are secret, too. A secret is masked whatever it is, except for null,
// true, false, empty values, and a number with a plural name, which is a count.
//
// The contents of an environment are secret too, whatever they are except for null and empty
// values: each member of an object, and a list as a whole. An environment is the value, which may
// also be a text or number, of a member whose name is env, envvars, envvariables, environment,
// environmentvars or environmentvariables.
//
// If the name is environments, or only ends with one of these words, the value is an environment if
// it is one of:
//
//   - a text with an equals sign, or a Mask (the text of nodeEnv usually has no equals sign),
//   - a list with such a text, or with objects that have a value that is not secret by the next
//     paragraph,
//   - an object with a text that is not secret by its own name.
//
// In an object whose member name, key, header or id is a text like one of these names, a member
// whose name ends with value(s) or default is treated as if it had that name: {"name":
// "Authorization", "value": "********"}.
//
// Secrets within a text, such as a password in a URL, are not found.
const Mask = "********"

// MaskSecrets returns free JSON, such as an entity's data, with a Mask for each of its secrets. It
// changes no other bytes, and returns nil for malformed JSON that may have secrets. A Transferer
// calls it for all JSON whose members its kind does not define.
func MaskSecrets(data json.RawMessage) json.RawMessage {
	switch {
	case !mayHaveSecrets(data):
		return data
	case !json.Valid(data):
		return nil
	}
	var out []byte
	done := 0
	findSecrets(data, func(_ []level, p place) {
		out = append(append(out, data[done:p.value]...), `"`+Mask+`"`...)
		done = p.end
	}, func(level) {})
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}

// KeepSecrets returns free JSON of an archive with the secrets that ours has at the same places.
// ours is the same JSON of the tenant's entity, or nil if the tenant does not have the entity. Two
// places are the same if the names of the members above them, including names that mark a value as
// secret, and the positions in arrays are equal. The arrays must have the same lengths.
//
// Secrets that ours does not have are removed with their names; lost is their number. Secrets of
// the archive itself, masked or not, are never used. It inserts at most len(ours) bytes, so that an
// archive that names one place a thousand times does not become large; other secrets are lost.
//
// A Transferer calls KeepSecrets for the JSON that it passes to MaskSecrets.
func KeepSecrets(data, ours json.RawMessage) (kept json.RawMessage, lost int) {
	switch {
	case !mayHaveSecrets(data):
		return data, 0
	case !json.Valid(data):
		return nil, 0
	case !json.Valid(ours):
		ours = nil
	}
	t := newTree()
	findSecrets(ours, func(levels []level, p place) {
		n := t.node(levels, true)
		t.nodes[n].value = ours[p.value:p.end]
	}, func(l level) { t.close(l, 0) })
	var places []place
	findSecrets(data, func(levels []level, p place) {
		p.node = t.node(levels, false)
		places = append(places, p)
	}, func(l level) { t.close(l, 1) })
	if len(places) == 0 {
		return data, 0
	}
	t.compare()
	out, done, left := make([]byte, 0, len(data)), 0, len(ours)
	for _, p := range places {
		if v := t.kept(p.node); v != nil && len(v) <= left {
			left -= len(v)
			out = append(append(out, data[done:p.value]...), v...)
			done = p.end
			continue
		}
		lost++
		out = bytes.TrimRight(append(out, data[done:p.begin]...), space)
		done = p.end
		rest := bytes.TrimLeft(data[done:], space)
		switch { // remove one of the commas next to it
		case bytes.HasSuffix(out, []byte{','}):
			out = out[:len(out)-1]
		case bytes.HasPrefix(rest, []byte{','}):
			done = len(data) - len(rest) + 1
		}
	}
	return append(out, data[done:]...), lost
}

// tree holds the places of secrets in two texts. Its first node is the text itself.
type tree struct {
	nodes []node
	steps map[step]int
}

// step leads from a node to a member, or to an element when name is "".
type step struct {
	from  int
	name  string // with its quotes, followed by the title of a pair
	index int
}

type node struct {
	parent int
	sizes  [2]int // lengths of the array in the two texts
	value  []byte // or nil
	same   bool   // all arrays that contain it have the same lengths in both texts
}

// Values of level.node that are not an index.
const (
	unknown = -1 // not searched yet
	absent  = -2 // the other text does not have it
)

func newTree() *tree { return &tree{nodes: []node{{same: true}}, steps: map[step]int{}} }

// node returns the node of the innermost of some levels, or absent. It adds missing nodes if add is
// set.
func (t *tree) node(levels []level, add bool) int {
	known := len(levels) - 1
	for levels[known].node == unknown {
		known--
	}
	for i := known; i < len(levels)-1; i++ {
		levels[i+1].node = t.step(levels[i], add)
	}
	return t.step(levels[len(levels)-1], add)
}

// step returns the node of the current member or element of a level, as node does.
func (t *tree) step(l level, add bool) int {
	if l.node == absent {
		return absent
	}
	s := step{from: l.node, index: l.index}
	if l.object {
		s.name, s.index = `"`+string(unescaped(l.name))+`"`+l.title, 0
	}
	n, ok := t.steps[s]
	switch {
	case ok:
		return n
	case !add:
		return absent
	}
	t.nodes = append(t.nodes, node{parent: l.node})
	t.steps[s] = len(t.nodes) - 1
	return t.steps[s]
}

// close records the length of an array.
func (t *tree) close(l level, text int) {
	if !l.object && l.node >= 0 {
		t.nodes[l.node].sizes[text] = l.index + 1
	}
}

// compare sets same in all nodes. Parents precede their children.
func (t *tree) compare() {
	for i := 1; i < len(t.nodes); i++ {
		n := &t.nodes[i]
		n.same = t.nodes[n.parent].same && n.sizes[0] == n.sizes[1]
	}
}

// kept returns the value of a node if its place is the same in both texts, else nil.
func (t *tree) kept(node int) []byte {
	if node == absent || !t.nodes[node].same {
		return nil
	}
	return t.nodes[node].value
}
