package saml_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// spliced is a document with something else in a place. So the inputs are short, and most of the
// document stays in order.
func spliced(document []byte, at, cut uint16, insert string) []byte {
	from := min(int(at), len(document))
	to := min(from+int(cut), len(document))
	return append(append(document[:from:from], insert...), document[to:]...)
}

// Whatever comes, nobody but jo gets in, and nothing panics.
func FuzzFinish(f *testing.F) {
	p := newIDP(f)
	v := p.begin(f, p.realm(f, nil))
	response := v.signedResponse(f, nil)
	one := text(f, response) // the assertion is signed
	samltest.Ours().Sign(f, response, sha256)
	both := text(f, response)
	f.Add(false, uint16(100), uint16(0), "<x/>")
	f.Add(true, uint16(0), uint16(65535), "<Response xmlns='urn:oasis:names:tc:SAML:2.0:protocol'/>")
	f.Fuzz(func(t *testing.T, whole bool, at, cut uint16, insert string) {
		document := one
		if whole {
			document = both
		}
		who, err := v.bring(t, spliced(document, at, cut, insert))
		if err == nil && who.Username != "jo" || err != nil && errs.CodeOf(err) != errs.Unauthenticated {
			t.Errorf("%+v, %v", who, err)
		}
	})
}

// Whatever metadata is, it is read or refused.
func FuzzMetadata(f *testing.F) {
	p := newIDP(f)
	document := []byte(list("", p.Metadata(f, nil)))
	f.Add(uint16(100), uint16(0), "<x/>")
	f.Add(uint16(0), uint16(65535), "<EntityDescriptor xmlns='urn:oasis:names:tc:SAML:2.0:metadata'/>")
	f.Fuzz(func(t *testing.T, at, cut uint16, insert string) {
		if _, err := openXML(t, string(spliced(document, at, cut, insert))); err != nil &&
			errs.CodeOf(err) != errs.Invalid {
			t.Error(err)
		}
	})
}
