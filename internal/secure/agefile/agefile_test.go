package agefile_test

import (
	"bytes"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
)

// TestDecryptRefusesExpensivePassphrases: a costly file is refused before memory is allocated for
// it.
func TestDecryptRefusesExpensivePassphrases(t *testing.T) {
	is := is.New(t)
	agefile.SetWorkFactor(1)
	var file bytes.Buffer
	w, err := agefile.Encrypt(&file, "some words")
	is.NoErr(err)
	is.NoErr(w.Close())
	_, err = agefile.Decrypt(bytes.NewReader(file.Bytes()), "some words")
	is.NoErr(err)
	costly := bytes.Replace(file.Bytes(), []byte(" 1\n"), []byte(" 19\n"), 1) // after the salt
	is.True(len(costly) > file.Len())
	_, err = agefile.Decrypt(bytes.NewReader(costly), "some words")
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.Equal(errs.MessageOf(err), "this is no export of a tenant, or its beginning was cut or changed")
}
