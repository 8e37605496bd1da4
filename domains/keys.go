package domains

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// KeyedDriver is a Driver whose realms sign what they send, or decrypt what they get, with key
// pairs of their domain. The Service makes the keys when a domain is saved, and keeps them sealed.
type KeyedDriver interface {
	Driver
	// OpenWithKeys is as Open, with the keys of the domain. A domain that was last saved before its
	// driver wanted keys has none yet.
	OpenWithKeys(config json.RawMessage, keys Keys) (Realm, error)
}

// Keys are the key pairs of a domain. Two calls of Service.RollKeys take the place of a key: the
// first one makes Next, which the provider learns of, and the second one makes it Current.
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

// The column that the keys of domains are sealed for; the row is the domain's id.
const keysColumn = "keys_sealed"

// How keys are made: as large as those of the providers themselves, with certificates that outlast
// them, as these stop a login when they end.
const (
	keyBits  = 2048
	keyYears = 10
)

// sealedKeys are Keys as they are stored.
type sealedKeys struct {
	Current  *sealedPair `json:"current,omitempty"`
	Next     *sealedPair `json:"next,omitempty"`
	Previous *sealedPair `json:"previous,omitempty"`
}

// sealedPair is a KeyPair: PKCS #8 and X.509.
type sealedPair struct {
	Key         []byte `json:"key"`
	Certificate []byte `json:"certificate"`
}

func (p *KeyPair) sealed() (*sealedPair, error) {
	if p == nil {
		return nil, nil
	}
	key, err := x509.MarshalPKCS8PrivateKey(p.Key)
	return &sealedPair{key, p.Certificate.Raw}, err
}

func (p *sealedPair) pair() (*KeyPair, error) {
	if p == nil {
		return nil, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(p.Key)
	if err != nil {
		return nil, err
	}
	own, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("domains: a key is a %T", key)
	}
	certificate, err := x509.ParseCertificate(p.Certificate)
	return &KeyPair{own, certificate}, err
}

// newKeyPair makes a key for a domain. It takes a tenth of a second or more: call it in no
// transaction.
func (s *Service) newKeyPair(d Domain) (*KeyPair, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	var serial [16]byte
	_, _ = rand.Read(serial[:]) // never returns an error
	serial[0] = serial[0]&0x7f | 0x40
	now := s.clock.Stamp()
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject:      pkix.Name{CommonName: clip(d.ID), Organization: []string{clip(d.Tenant)}},
		NotBefore:    now.Add(-time.Hour).Truncate(time.Second),
		NotAfter:     now.AddDate(keyYears, 0, 0).Truncate(time.Second),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &KeyPair{key, certificate}, err
}

// clip returns as much of an id as a name in a certificate may have.
func clip(id string) string { return id[:min(len(id), 64)] }

// keys returns the keys of a domain.
func (l *lookup) keys(d Domain) (k Keys, err error) {
	if d.SealedKeys == "" {
		return k, nil
	}
	plain, err := l.sealer.Open(d.Tenant, secretsTable, keysColumn, d.ID, d.SealedKeys)
	if err != nil {
		return k, err
	}
	var stored sealedKeys
	if err := json.Unmarshal(plain, &stored); err != nil {
		return k, err
	}
	for from, to := range map[*sealedPair]**KeyPair{
		stored.Current:  &k.Current,
		stored.Next:     &k.Next,
		stored.Previous: &k.Previous,
	} {
		if from == nil {
			continue
		}
		if *to, err = from.pair(); err != nil {
			return k, err
		}
	}
	return k, nil
}

// sealKeys returns keys for Domain.SealedKeys.
func (s *Service) sealKeys(d Domain, k Keys) (string, error) {
	var stored sealedKeys
	var err error
	for to, from := range map[**sealedPair]*KeyPair{
		&stored.Current:  k.Current,
		&stored.Next:     k.Next,
		&stored.Previous: k.Previous,
	} {
		if *to, err = from.sealed(); err != nil {
			return "", err
		}
	}
	plain, err := json.Marshal(stored)
	if err != nil {
		return "", err
	}
	return s.sealer.Seal(d.Tenant, secretsTable, keysColumn, d.ID, plain)
}

// setKeys sets the keys of a domain that is saved: it keeps those that the domain has, generates
// missing ones for a KeyedDriver, and removes those that another driver does not use. It opens the
// configuration of c with new keys. made are sealed keys to use as the new ones, "" for none.
func (s *Service) setKeys(d *Domain, c *change, driver Driver, made string) error {
	if !isKeyed(driver) {
		d.SealedKeys = ""
		return nil
	}
	if d.SealedKeys != "" || c.realm == nil {
		return nil
	}
	if d.SealedKeys = made; made == "" {
		pair, err := s.newKeyPair(*d)
		if err != nil {
			return err
		}
		if d.SealedKeys, err = s.sealKeys(*d, Keys{Current: pair}); err != nil {
			return err
		}
	}
	whole, err := together(c.config, c.secrets)
	if err == nil {
		c.realm, err = s.openWith(*d, driver, whole)
	}
	return err
}

// openWith opens a configuration with the keys and the IDs of its domain.
func (l *lookup) openWith(d Domain, driver Driver, config json.RawMessage) (Realm, error) {
	if by, ok := driver.(IDDriver); ok {
		return by.OpenWithIDs(config, d.IDs)
	}
	keyed, ok := driver.(KeyedDriver)
	if !ok {
		return driver.Open(config)
	}
	keys, err := l.keys(d)
	if err != nil {
		return nil, err
	}
	return keyed.OpenWithKeys(config, keys)
}

// KeyInfo describes a key of a domain. The private key is nowhere in it.
type KeyInfo struct {
	Use         string // current, next or previous
	Bits        int
	Certificate *x509.Certificate
}

func (k Keys) infos() []KeyInfo {
	all := []KeyInfo{}
	for _, one := range []struct {
		use  string
		pair *KeyPair
	}{{"current", k.Current}, {"next", k.Next}, {"previous", k.Previous}} {
		if one.pair != nil {
			all = append(all, KeyInfo{one.use, one.pair.Key.N.BitLen(), one.pair.Certificate})
		}
	}
	return all
}

// DomainKeys returns what is public of a domain's keys to a superuser: none before the domain is
// saved with a driver that wants some.
// Errors: errs.Forbidden; errs.NotFound.
func (s *Service) DomainKeys(ctx context.Context, id string) ([]KeyInfo, error) {
	a, err := actor.Allowed(ctx, actor.SuperuserRead)
	if err != nil {
		return nil, err
	}
	d, err := s.get(ctx, a.Tenant, id)
	if err != nil {
		return nil, err
	}
	k, err := s.keys(d)
	return k.infos(), err
}

// RollKeys takes one step to another key of a domain, and returns the keys as DomainKeys does. It
// needs a superuser. The first call adds the next key, which the provider has to learn of; the
// second one makes it the current one, and keeps the one before for what is still encrypted for it.
// A domain without keys gets its first one.
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid for a driver that wants no keys;
// errs.Conflict if somebody else changes the keys.
func (s *Service) RollKeys(ctx context.Context, id string) ([]KeyInfo, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	was, err := s.get(ctx, a.Tenant, id)
	if err != nil {
		return nil, err
	}
	if _, driver, _ := s.driver(was.Type); !isKeyed(driver) {
		return nil, errs.New(errs.Invalid, "The driver %s of the domain uses no keys.", was.Type)
	}
	leave, err := s.takeTrial(ctx, a.Tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	k, err := s.keys(was)
	if err != nil {
		return nil, err
	}
	if k.Current != nil && k.Next != nil {
		k = Keys{Current: k.Next, Previous: k.Current}
	} else {
		to := &k.Next
		if k.Current == nil {
			to = &k.Current
		}
		if *to, err = s.newKeyPair(was); err != nil {
			return nil, err
		}
	}
	sealed, err := s.sealKeys(was, k)
	if err != nil {
		return nil, err
	}
	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionUpdate}
	err = s.o.Feed.In(ctx, nil, a.Tenant, of, func(ctx context.Context) error {
		_, err := s.store.Update(ctx, a.Tenant, id, func(d *Domain) error {
			if d.SealedKeys != was.SealedKeys || d.Type != was.Type {
				return errs.New(errs.Conflict, "The keys of the domain were changed meanwhile. Try again.")
			}
			d.SealedKeys = sealed
			s.touch(d, *d)
			return nil
		})
		return err
	})
	return k.infos(), err
}

func isKeyed(driver Driver) bool {
	_, ok := driver.(KeyedDriver)
	return ok
}

// touch sets when a domain was changed, so that the version tells every edit.
func (s *Service) touch(d *Domain, was Domain) {
	if d.UpdatedAt = s.clock.Stamp(); !d.UpdatedAt.After(was.UpdatedAt) {
		d.UpdatedAt = was.UpdatedAt.Add(time.Microsecond)
	}
}
