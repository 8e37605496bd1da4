// Package agefile encrypts the file of an exported tenant under a passphrase.
//
// The root imports it. Package tenantrows does not, so that programs with a store of tenants link
// no age.
package agefile

import (
	"errors"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/gzip"

	"github.com/tenantcontent/tenantcontent/errs"
)

// workFactor is the binary logarithm of the cost of one guess of the passphrase. With 17 it is 128
// MiB of memory and some tenths of a second.
var workFactor = 17

// maxWorkFactor limits the cost of opening a file from elsewhere. With 18 it is 256 MiB of memory.
const maxWorkFactor = 18

// SetWorkFactor sets a lower cost for tests.
func SetWorkFactor(n int) { workFactor = n }

// Encrypt returns a writer that compresses and encrypts with a passphrase, in the format of age
// (age-encryption.org/v1). The caller must close it.
func Encrypt(w io.Writer, passphrase string) (io.WriteCloser, error) {
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, err
	}
	to.SetWorkFactor(workFactor)
	sealed, err := age.Encrypt(w, to)
	if err != nil {
		return nil, err
	}
	return &encrypted{gzip.NewWriter(sealed), sealed}, nil
}

type encrypted struct {
	*gzip.Writer
	sealed io.Closer
}

// Close implements io.Closer.
func (e *encrypted) Close() error {
	err := e.Writer.Close()
	if sealed := e.sealed.Close(); err == nil {
		err = sealed
	}
	return err
}

// Decrypt reads what a writer of Encrypt has written. Its errors, and those of the reader, are
// errs.Invalid, unless r fails.
func Decrypt(r io.Reader, passphrase string) (io.Reader, error) {
	from := &source{r: r}
	by, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	by.SetMaxWorkFactor(maxWorkFactor)
	plain, err := age.Decrypt(from, by)
	var none *age.NoIdentityMatchError
	switch {
	case from.err != nil:
		return nil, from.err
	case errors.As(err, &none):
		return nil, errs.Wrap(errs.Invalid, err, "the passphrase is not the one that the export was made with")
	case err != nil:
		return nil, errs.Wrap(errs.Invalid, err, "this is no export of a tenant, or its beginning was cut or changed")
	}
	unpacked, err := gzip.NewReader(&opened{plain, from})
	if err != nil {
		return nil, (&opened{nil, from}).explain(err)
	}
	return &opened{unpacked, from}, nil
}

// source stores an error of the underlying reader.
type source struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// opened is a decrypted reader. Each piece of it has been authenticated.
type opened struct {
	io.Reader
	from *source
}

// Read implements io.Reader.
func (o *opened) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = o.explain(err)
	}
	return n, err
}

func (o *opened) explain(err error) error {
	switch {
	case o.from.err != nil:
		return o.from.err
	case errs.CodeOf(err) == errs.Invalid:
		return err
	}
	return errs.Wrap(errs.Invalid, err, "the export was cut or changed")
}
