package tenants

import (
	"context"
	"errors"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
)

// keyCheck is a constant that is stored sealed for each tenant, in the column key_check.
const keyCheck = "tenantcontent key check 1"

// The place that the constant is sealed for.
const (
	checkTable  = "tc_tenants"
	checkColumn = "key_check"
)

// ParseKeys returns the Sealer for one or more 32-byte keys in base64 or hex, parted by commas: the
// first encrypts, all decrypt. tenantcontent.Config has the same text as SecretKey. Errors:
// errs.Invalid.
func ParseKeys(text string) (Sealer, error) {
	ring, err := keyring.Parse(text)
	if err != nil {
		return nil, err
	}
	return ring, nil
}

// CheckKeys checks that the secrets of every tenant can be read, so that a start with the wrong key
// is noticed before it writes anything. It looks at one tenant for each key that there is a name
// of. It returns errs.Invalid with what to do if they cannot.
func (u Unchecked) CheckKeys(ctx context.Context) error {
	ids, err := u.s.store.KeyChecks(ctx, u.s.keys.Beginning())
	if err != nil {
		return err
	}
	for _, id := range ids {
		sealed, err := u.s.store.KeyCheck(ctx, id)
		if err != nil {
			return err
		}
		plain, err := u.s.keys.Open(id, checkTable, checkColumn, id, sealed)
		if err == nil && string(plain) != keyCheck {
			err = errors.New("it opens to something else")
		}
		if err != nil {
			return errs.Wrap(errs.Invalid, err,
				"the secret key does not fit this database (tenant %s): start with the key that "+
					"it was made with, or, after a change of keys, list the old key beside the new one until "+
					"rekey has run",
				id)
		}
	}
	return nil
}

// Rekey seals every secret again under the current key where it is not already, a tenant in one
// transaction at a time, and returns how many values it wrote. It may be stopped and run again.
// Errors: errs.Invalid when a secret opens under no key.
func (u Unchecked) Rekey(ctx context.Context) (int, error) {
	ids, err := u.s.store.IDs(ctx)
	if err != nil {
		return 0, err
	}
	columns, written := u.s.hooks.Sealed(), 0
	for _, id := range ids {
		n, err := u.s.store.Reseal(ctx, id, columns, func(old Secret) (string, error) { return u.s.reseal(id, old) })
		if err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

func (s *Service) reseal(tenant string, old Secret) (string, error) {
	if s.keys.Current(old.Sealed) {
		return old.Sealed, nil
	}
	if old.Table == checkTable && old.Column == checkColumn && old.Sealed == "" { // made outside Add
		return s.sealCheck(tenant)
	}
	plain, err := s.keys.Open(tenant, old.Table, old.Column, old.Row, old.Sealed)
	if err != nil {
		return "", errs.Wrap(errs.Invalid, err,
			"%s.%s of %q in tenant %s opens under no key: list the key it was sealed with",
			old.Table, old.Column, old.Row, tenant)
	}
	return s.keys.Seal(tenant, old.Table, old.Column, old.Row, plain)
}

func (s *Service) sealCheck(tenant string) (string, error) {
	return s.keys.Seal(tenant, checkTable, checkColumn, tenant, []byte(keyCheck))
}
