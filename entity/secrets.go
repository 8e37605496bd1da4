package entity

import (
	"bytes"
	"encoding/json"
)

// Mask replaces a secret of an entity in a row.
const Mask = "********"

// MaskSecrets returns free JSON, such as an entity's data, with a Mask for each of its secrets. It
// changes no other bytes. A Transferer calls it for all JSON whose members its kind does not name
// itself.
//
// A secret is, at any depth, the value of a member with one of the names below; letters alone
// count, in either case, so that "API-Key 2" is apikey. Names are secret that end with password(s),
// passwd, pwd, passphrase, passcode, secret(s), token, apikey(s), accesskey, accountkey, clientkey,
// encryptionkey, hmackey, masterkey, privatekey(s), secretkey, sessionkey, sharedkey, signingkey,
// sshkey, storagekey, credential(s), authorization, connectionstring, connstring,
// sharedaccesssignature, with passwordhash, secrethash or tokenhash, or with accesstokens,
// apitokens, authtokens or refreshtokens; those with one or two of base, confirm, confirmation,
// content, data, default, encoded, encrypted, json, pem, string and value(s) behind that; and the
// names bearer, cookie(s), setcookie, databaseurl, dsn, jwt, otp, pass, dbpass, smtppass, userpass,
// pin, pw and tokens. It is masked whatever it is, except for null, true, false, what is empty, and
// a number under a plural, which is a count.
//
// What is in an environment is secret too, whatever it is except for null and what is empty: each
// member of an object, and a list as a whole. An environment is the value of a member whose name is
// env, envvars, envvariables, environment, environmentvars or environmentvariables, a text or
// number too. Where the name is environments, or only ends with one of these words, it is a text
// that has an equals sign, as that of nodeEnv has none, a list with such a text, or a Mask, or with
// objects that have a value which is no secret by the next paragraph, or an object with a text in
// it that is no secret by its own name.
//
// In an object whose member name, key, header or id is a text like one of these names, a member
// whose name ends with value(s) or default is what it would be under that name: {"name":
// "Authorization", "value": "********"}.
//
// Secrets within a text, such as a password in a URL, are not found. It returns nil for malformed
// JSON that may have secrets.
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

// KeepSecrets returns free JSON of an archive with the secrets that ours, the same JSON of the
// tenant's entity, has at the same places; ours is nil if the tenant does not have the entity. Two
// places are the same if the names of the members above them are equal, those that mark a value as
// secret, and the positions in arrays, which must have the same length. Secrets that ours does not
// have are removed with their names; lost is their number. Secrets of the archive itself, masked or
// not, are never used. A Transferer calls it for the JSON that it passes to MaskSecrets. It inserts
// at most as many bytes as ours has, so that an archive which names one place a thousand times does
// not become large; the rest is lost.
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
		switch { // one of the commas around it goes with it
		case bytes.HasSuffix(out, []byte{','}):
			out = out[:len(out)-1]
		case bytes.HasPrefix(rest, []byte{','}):
			done = len(data) - len(rest) + 1
		}
	}
	return append(out, data[done:]...), lost
}

// tree has the places of secrets in two texts. Its first node is the text itself.
type tree struct {
	nodes []node
	steps map[step]int
}

// step leads from a node to a member, or to an element when name is "".
type step struct {
	from  int
	name  string // with its quotes, and the title of a pair behind it
	index int
}

type node struct {
	parent int
	sizes  [2]int // of arrays, in the one text and the other
	value  []byte // nil for none
	same   bool   // all arrays above are as long in both
}

// The values of level.node without a node.
const (
	unknown = -1 // not looked up yet
	absent  = -2 // the other text has none
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

// step returns the node of the member or element that a level is at, as node does.
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

// compare finds the places that are the same: parents come before their children.
func (t *tree) compare() {
	for i := 1; i < len(t.nodes); i++ {
		n := &t.nodes[i]
		n.same = t.nodes[n.parent].same && n.sizes[0] == n.sizes[1]
	}
}

// kept returns the value of a place that is the same, nil for none.
func (t *tree) kept(node int) []byte {
	if node == absent || !t.nodes[node].same {
		return nil
	}
	return t.nodes[node].value
}
