package domains

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
)

// KeyedDriver is a Driver whose realms sign what they send, or decrypt what they get, with key pairs of their domain. The Service
// makes the keys when a domain is saved, and keeps them sealed.
type KeyedDriver interface {
	Driver
	// OpenWithKeys is as Open, with the keys of the domain. A domain that was last saved before its driver wanted keys has none yet.
	OpenWithKeys(config json.RawMessage, keys Keys) (Realm, error)
}

// Keys are the key pairs of a domain. Two calls of Service.RollKeys take the place of a key: the first one makes Next, which the
// provider learns of, and the second one makes it Current.
type Keys struct {
	Current  *KeyPair // signs, and decrypts; nil: there are no keys yet
	Next     *KeyPair // is published, and decrypts; nil for none
	Previous *KeyPair // was Current, and decrypts what is still encrypted for it; nil for none
}

// All returns the keys, Current first.
func (k Keys) All() []KeyPair {
	var all []KeyPair
	for _, pair := range []*KeyPair{k.Current, k.Next, k.Previous} {
		if pair != nil {
			all = append(all, *pair)
		}
	}
	return all
}

// KeyPair is a private key with the certificate that it has signed itself.
type KeyPair struct {
	Key         *rsa.PrivateKey
	Certificate *x509.Certificate
}
