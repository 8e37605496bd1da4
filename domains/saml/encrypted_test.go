package saml_test

import (
	"crypto/hmac"
	hash "crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// ours are this service's keys in the tests: of the strangers, as nobody here signs with them.
func ours(s samltest.Signer) *domains.KeyPair {
	return &domains.KeyPair{Key: s.Key, Certificate: s.Cert}
}

// keyed opens a domain at the provider that has keys.
func (p *idp) keyed(t testing.TB, keys domains.Keys, more map[string]any) login {
	t.Helper()
	config := map[string]any{"metadataXML": p.Metadata(t, nil)}
	for name, value := range more {
		config[name] = value
	}
	text, err := json.Marshal(config)
	is.New(t).NoErr(err)
	r, err := saml.Driver{}.OpenWithKeys(text, keys)
	is.New(t).NoErr(err)
	document, _, err := r.(login).Metadata(at)
	is.New(t).NoErr(err)
	p.Put(t, "/services/content", document)
	return r.(login)
}

// sealed is an encrypted assertion that the provider has signed.
func (v *visit) sealed(t testing.TB, to samltest.Signer, how samltest.Encryption) *etree.Element {
	t.Helper()
	a := v.assertion(nil)
	samltest.Ours().Sign(t, a, sha256)
	return samltest.Encrypt(t, to.Cert, text(t, a), how)
}

// hidden is an assertion whose subject was changed before the provider has signed it.
func (v *visit) hidden(t testing.TB, change func(subject *etree.Element)) *etree.Element {
	t.Helper()
	a := v.assertion(nil)
	change(a.FindElement("./Subject"))
	samltest.Ours().Sign(t, a, sha256)
	return a
}

// TestEncryptedName: a NameID that is encrypted by itself is as good as one in the clear, also in
// an encrypted assertion, and for a key that was replaced.
func TestEncryptedName(t *testing.T) {
	p, second := newIDP(t), samltest.NewSigner(time.Now())
	for _, keys := range []domains.Keys{
		{Current: ours(samltest.Theirs())},
		{Current: ours(second), Previous: ours(samltest.Theirs()), Next: ours(samltest.NewSigner(time.Now()))},
	} {
		r := p.keyed(t, keys, nil)
		for _, content := range []string{"aes256-gcm", "aes128-cbc"} {
			for _, whole := range []bool{false, true} {
				is, v := is.New(t), p.begin(t, r)
				a := v.hidden(t, func(subject *etree.Element) { encryptName(t, subject, content) })
				if whole {
					a = samltest.Encrypt(t, samltest.Theirs().Cert, text(t, a), samltest.Encryption{Content: content})
				}
				who, err := v.sign(t, text(t, v.response(a)))
				is.NoErr(err)
				is.Equal(who.Username, "jo")
				is.True(strings.Contains(string(who.Session.Memory), "jo@example.com")) // its NameID
			}
		}
	}
}

// TestDecryptions: three keys are decrypted for a response, whatever is in it.
func TestDecryptions(t *testing.T) {
	p := newIDP(t)
	keys := domains.Keys{
		Current:  ours(samltest.NewSigner(time.Now())),
		Previous: ours(samltest.NewSigner(time.Now())),
		Next:     ours(samltest.Theirs()),
	}
	r := p.keyed(t, keys, nil)
	for others, good := range map[int]bool{0: true, 1: false} {
		v := p.begin(t, r)
		sealed := v.sealed(t, samltest.Theirs(), samltest.Encryption{Content: "aes256-gcm"})
		info := sealed.FindElement("./EncryptedData/KeyInfo")
		for range others {
			strange := samltest.Encrypt(
				t, samltest.Ours().Cert, []byte("x"), samltest.Encryption{Content: "aes256-gcm"},
			).FindElement("./EncryptedData/KeyInfo/EncryptedKey")
			strange.CreateAttr("Id", "key2")
			info.AddChild(strange)
		}
		who, err := v.finish(t, v.response(sealed))
		if good {
			is.New(t).NoErr(err)
		} else {
			refused(t, who, err, "cannot be decrypted")
		}
	}
}

// Every algorithm that providers use, with the key in the content or beside it, with either
// signature.
func TestEncrypted(t *testing.T) {
	p := newIDP(t)
	r := p.keyed(t, domains.Keys{Current: ours(samltest.Theirs())}, nil)
	for _, content := range []string{
		"aes128-gcm", "aes192-gcm", "aes256-gcm", "aes128-cbc", "aes192-cbc", "aes256-cbc",
	} {
		for _, key := range []string{"", "sha256"} {
			for _, beside := range []bool{false, true} {
				is := is.New(t)
				v := p.begin(t, r)
				who, err := v.finish(
					t,
					v.response(v.sealed(
						t, samltest.Theirs(), samltest.Encryption{Content: content, Key: key, Beside: beside},
					)),
				)
				is.NoErr(err)
				is.Equal(who.Username, "jo")
			}
		}
	}
	for _, inside := range []bool{false, true} {
		is := is.New(t)
		v := p.begin(t, r)
		a := v.assertion(nil)
		if inside {
			samltest.Ours().Sign(t, a, sha256)
		}
		response := v.response(samltest.Encrypt(
			t, samltest.Theirs().Cert, text(t, a), samltest.Encryption{Content: "aes256-cbc"},
		))
		samltest.Ours().Sign(t, response, sha256)
		who, err := v.finish(t, response)
		is.NoErr(err)
		is.Equal(who.Username, "jo")
	}
}

// A provider that encrypts by itself reads the key in the metadata.
func TestProviderEncrypts(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	r := p.keyed(t, domains.Keys{Current: ours(samltest.Theirs())}, nil)
	v := p.begin(t, r)
	is.NoErr(v.request.MakeResponse())
	is.True(v.request.ResponseEl.FindElement("./EncryptedAssertion") != nil)
	who, err := v.finish(t, v.request.ResponseEl)
	is.NoErr(err)
	is.Equal(who.Username, "jo")
}

// While keys are rolled, the next and the previous one decrypt, too, and the metadata has what the
// provider needs.
func TestRolled(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	second := samltest.NewSigner(time.Now())
	for _, keys := range []domains.Keys{
		{Current: ours(samltest.Theirs()), Next: ours(second)},
		{Current: ours(second), Previous: ours(samltest.Theirs())},
	} {
		r := p.keyed(t, keys, nil)
		for _, to := range []samltest.Signer{samltest.Theirs(), second} {
			v := p.begin(t, r)
			_, err := v.finish(t, v.response(v.sealed(t, to, samltest.Encryption{Content: "aes256-gcm"})))
			is.NoErr(err)
		}
		v := p.begin(t, r)
		who, err := v.finish(t, v.response(v.sealed(t, samltest.Ours(), samltest.Encryption{Content: "aes256-gcm"})))
		refused(t, who, err, "cannot be decrypted")

		document, _, err := r.Metadata(at)
		is.NoErr(err)
		is.True(!strings.Contains(string(document), "PRIVATE"))
		var e crewjam.EntityDescriptor
		is.NoErr(xml.Unmarshal(document, &e))
		var uses string
		for _, k := range e.SPSSODescriptors[0].KeyDescriptors {
			uses += k.Use + " "
			if k.Use == "encryption" {
				is.Equal(
					k.KeyInfo.X509Data.X509Certificates[0].Data,
					base64.StdEncoding.EncodeToString(keys.Current.Certificate.Raw),
				)
			}
		}
		if keys.Next != nil {
			is.Equal(uses, "signing signing encryption ")
		} else {
			is.Equal(uses, "signing encryption ")
		}
	}
}

// What is wrong with a ciphertext is one reason, or one that is about the provider's settings
// alone; and nothing in it is believed without a signature.
func TestRefusedCiphertexts(t *testing.T) {
	p := newIDP(t)
	r := p.keyed(t, domains.Keys{Current: ours(samltest.Theirs())}, nil)
	to := samltest.Theirs().Cert
	sealed := func(t *testing.T, v *visit, how samltest.Encryption) *etree.Element {
		return v.sealed(t, samltest.Theirs(), how)
	}
	gcm, cbc := samltest.Encryption{Content: "aes256-gcm"}, samltest.Encryption{Content: "aes256-cbc"}
	change := func(
		how samltest.Encryption, path string, fn func(*etree.Element),
	) func(*testing.T, *visit) *etree.Element {
		return func(t *testing.T, v *visit) *etree.Element {
			e := sealed(t, v, how)
			fn(e.FindElement(path))
			return v.response(e)
		}
	}
	value := "./EncryptedData/CipherData/CipherValue"
	flip := func(at int) func(*etree.Element) {
		return func(el *etree.Element) {
			b, _ := base64.StdEncoding.DecodeString(el.Text())
			b[(at+len(b))%len(b)] ^= 1
			el.SetText(base64.StdEncoding.EncodeToString(b))
		}
	}
	cut := func(n int) func(*etree.Element) {
		return func(el *etree.Element) {
			b, _ := base64.StdEncoding.DecodeString(el.Text())
			el.SetText(base64.StdEncoding.EncodeToString(b[:n]))
		}
	}
	plain := func(fn func(t *testing.T, v *visit) []byte) func(*testing.T, *visit) *etree.Element {
		return func(t *testing.T, v *visit) *etree.Element { return v.response(samltest.Encrypt(t, to, fn(t, v), cbc)) }
	}
	const undecryptable = "cannot be decrypted"
	for name, c := range map[string]struct {
		why   string
		forge func(t *testing.T, v *visit) *etree.Element
	}{
		"unsigned": {"neither the response nor its assertion is signed", plain(func(t *testing.T, v *visit) []byte {
			return text(t, v.assertion(nil))
		})},
		"of a stranger": {"signature of the assertion", plain(func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Theirs().Sign(t, a, sha256)
			return text(t, a)
		})},
		"a flipped bit":            {undecryptable, change(gcm, value, flip(40))},
		"a flipped bit of CBC":     {"", change(cbc, value, flip(40))},
		"a flipped padding of CBC": {"", change(cbc, value, flip(-17))},
		"a short GCM":              {undecryptable, change(gcm, value, cut(11))},
		"no GCM":                   {undecryptable, change(gcm, value, cut(0))},
		"a short CBC":              {undecryptable, change(cbc, value, cut(16))},
		"half a block":             {undecryptable, change(cbc, value, cut(40))},
		"no CBC":                   {undecryptable, change(cbc, value, cut(0))},
		"no base64":                {undecryptable, change(cbc, value, func(el *etree.Element) { el.SetText("%") })},
		"GCM taken for CBC": {undecryptable, change(gcm, "./EncryptedData/EncryptionMethod", func(el *etree.Element) {
			el.CreateAttr("Algorithm", "http://www.w3.org/2001/04/xmlenc#aes256-cbc")
		})},
		"a key of another size": {undecryptable,
			change(gcm, "./EncryptedData/EncryptionMethod", func(el *etree.Element) {
				el.CreateAttr("Algorithm", "http://www.w3.org/2009/xmlenc11#aes128-gcm")
			})},
		"Triple DES": {"choose AES", change(gcm, "./EncryptedData/EncryptionMethod", func(el *etree.Element) {
			el.CreateAttr("Algorithm", "http://www.w3.org/2001/04/xmlenc#tripledes-cbc")
		})},
		"RSA 1.5": {"choose RSA-OAEP", func(t *testing.T, v *visit) *etree.Element {
			return v.response(sealed(t, v, samltest.Encryption{Content: "aes256-gcm", Key: "rsa15"}))
		}},
		"an address instead": {undecryptable, change(gcm, "./EncryptedData/CipherData", func(el *etree.Element) {
			el.RemoveChild(el.ChildElements()[0])
			el.CreateElement("xenc:CipherReference").CreateAttr("URI", "http://169.254.169.254/")
		})},
		"no key": {undecryptable, change(gcm, "./EncryptedData", func(el *etree.Element) {
			el.RemoveChild(el.FindElement("./KeyInfo"))
		})},
		"many keys": {"more than 3 keys", change(gcm, "./EncryptedData/KeyInfo", func(el *etree.Element) {
			for i := range 3 {
				k := el.ChildElements()[0].Copy()
				k.CreateAttr("Id", "key"+string(rune('0'+i)))
				k.FindElement("./CipherData/CipherValue").SetText("AAAA")
				el.InsertChildAt(0, k)
			}
		})},
		"another element": {undecryptable, plain(func(*testing.T, *visit) []byte { return []byte("<x/>") })},
		"no XML":          {undecryptable, plain(func(*testing.T, *visit) []byte { return []byte("jo") })},
		"nothing":         {undecryptable, plain(func(*testing.T, *visit) []byte { return nil })},
		"more than 1 MiB": {"", plain(func(t *testing.T, v *visit) []byte {
			return append(text(t, v.assertion(nil)), strings.Repeat(" ", 1<<20)...)
		})},
		"entities": {undecryptable, plain(func(t *testing.T, v *visit) []byte {
			return append([]byte(`<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>`), signedText(t, v)...)
		})},
		"a comment in a name": {undecryptable, plain(func(t *testing.T, v *visit) []byte {
			return []byte(strings.Replace(string(signedText(t, v)), ">jo<", ">j<!-- -->o<", 1))
		})},
		"another namespace": {undecryptable, plain(func(t *testing.T, v *visit) []byte {
			return []byte(strings.ReplaceAll(
				string(signedText(t, v)), "urn:oasis:names:tc:SAML:2.0:assertion", "urn:x",
			))
		})},
		"encrypted twice": {undecryptable, func(t *testing.T, v *visit) *etree.Element {
			return v.response(samltest.Encrypt(t, to, text(t, sealed(t, v, gcm)), gcm))
		}},
		"with a second one in the clear": {"more than one assertion", func(t *testing.T, v *visit) *etree.Element {
			return v.response(sealed(t, v, gcm), evil(v.assertion(nil), "id-evil"))
		}},
		"two": {"more than one assertion", func(t *testing.T, v *visit) *etree.Element {
			other := sealed(t, v, gcm)
			other.FindElement("./EncryptedData/KeyInfo/EncryptedKey").CreateAttr("Id", "key2")
			return v.response(sealed(t, v, gcm), other)
		}},
		"a NameID by itself that does not open": {undecryptable, func(t *testing.T, v *visit) *etree.Element {
			return v.response(v.hidden(t, func(subject *etree.Element) {
				encryptName(t, subject, "aes256-gcm")
				flip(40)(subject.FindElement("./EncryptedID/EncryptedData/CipherData/CipherValue"))
			}))
		}},
		"a NameID by itself that is no NameID": {undecryptable, func(t *testing.T, v *visit) *etree.Element {
			return v.response(v.hidden(t, func(subject *etree.Element) {
				subject.FindElement("./NameID").Tag = "Issuer"
				encryptName(t, subject, "aes256-cbc", "./Issuer")
			}))
		}},
		"a comment in a NameID by itself": {undecryptable, func(t *testing.T, v *visit) *etree.Element {
			return v.response(v.hidden(t, func(subject *etree.Element) {
				subject.FindElement("./NameID").InsertChildAt(0, etree.NewComment("x"))
				encryptName(t, subject, "aes256-gcm")
			}))
		}},
		"a NameID by itself that nobody has signed": {"", func(t *testing.T, v *visit) *etree.Element {
			response := v.signedResponse(t, nil)
			encryptName(t, response.FindElement("./Assertion/Subject"), "aes256-gcm")
			return response
		}},
		"two NameIDs by themselves": {"not of its subject", func(t *testing.T, v *visit) *etree.Element {
			return v.response(v.hidden(t, func(subject *etree.Element) {
				subject.AddChild(subject.FindElement("./NameID").Copy())
				encryptName(t, subject, "aes256-gcm")
				encryptName(t, subject, "aes256-gcm")
			}))
		}},
		"a NameID by itself of a confirmation": {"not of its subject", func(t *testing.T, v *visit) *etree.Element {
			return v.response(v.hidden(t, func(subject *etree.Element) {
				confirmation := subject.FindElement("./SubjectConfirmation")
				confirmation.InsertChildAt(0, subject.FindElement("./NameID").Copy())
				encryptName(t, confirmation, "aes256-gcm")
			}))
		}},
		"an attribute by itself": {"encrypted by itself", func(t *testing.T, v *visit) *etree.Element {
			response := v.signedResponse(t, nil)
			response.FindElement("./Assertion/AttributeStatement/Attribute").Tag = "EncryptedAttribute"
			return response
		}},
		"SHA-1 inside": {undecryptable, plain(func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA1SignatureMethod)
			return text(t, a)
		})},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			before := time.Now()
			who, err := v.finish(t, c.forge(t, v))
			refused(t, who, err, c.why)
			if strings.Contains(err.Error(), undecryptable) && time.Since(before) < domains.MinRefusal {
				t.Error("a refusal tells by its time how far the ciphertext was good")
			}
		})
	}
}

// signedText is the assertion, signed.
func signedText(t *testing.T, v *visit) []byte {
	a := v.assertion(nil)
	samltest.Ours().Sign(t, a, sha256)
	return text(t, a)
}

// Signature wrapping around and in what is encrypted. Whoever forges knows the domain's
// certificate, and a good assertion of jo.
func TestEncryptedWrapping(t *testing.T) {
	p := newIDP(t)
	r := p.keyed(t, domains.Keys{Current: ours(samltest.Theirs())}, nil)
	how := samltest.Encryption{Content: "aes256-gcm"}
	encrypt := func(t *testing.T, el *etree.Element) *etree.Element {
		return samltest.Encrypt(t, samltest.Theirs().Cert, text(t, el), how)
	}
	for name, wrap := range map[string]func(t *testing.T, v *visit, good *etree.Element) *etree.Element{
		"evil around the signed one": func(t *testing.T, v *visit, good *etree.Element) *etree.Element {
			e := evil(good, "id-evil")
			e.AddChild(good.Copy())
			return v.response(encrypt(t, e))
		},
		"evil with the signature, the signed one in an Object": func(
			t *testing.T, v *visit, good *etree.Element,
		) *etree.Element {
			e := evil(good, good.SelectAttrValue("ID", ""))
			s := good.FindElement("./Signature").Copy()
			s.CreateElement("ds:Object").AddChild(bare(good))
			e.InsertChildAt(1, s)
			return v.response(encrypt(t, e))
		},
		"evil with the signature of the signed one": func(t *testing.T, v *visit, good *etree.Element) *etree.Element {
			e := evil(good, good.SelectAttrValue("ID", ""))
			e.InsertChildAt(1, good.FindElement("./Signature").Copy())
			return v.response(encrypt(t, e))
		},
		"evil encrypted, the signed one in Extensions": func(
			t *testing.T, v *visit, good *etree.Element,
		) *etree.Element {
			response := v.response(encrypt(t, evil(good, "id-evil")))
			response.InsertChildAt(1, etree.NewElement("samlp:Extensions"))
			response.FindElement("./Extensions").AddChild(good.Copy())
			return response
		},
		"evil in the clear, the signed one encrypted": func(
			t *testing.T, v *visit, good *etree.Element,
		) *etree.Element {
			return v.response(evil(good, "id-evil"), encrypt(t, good))
		},
		"the signed response around, evil encrypted in place": func(
			t *testing.T, v *visit, good *etree.Element,
		) *etree.Element {
			response := v.response(encrypt(t, good))
			samltest.Ours().Sign(t, response, sha256)
			old := response.FindElement("./EncryptedAssertion")
			response.InsertChildAt(old.Index(), encrypt(t, evil(good, "id-evil")))
			response.RemoveChild(old)
			return response
		},
		"evil encrypted beside a signed response in the signature": func(
			t *testing.T, v *visit, good *etree.Element,
		) *etree.Element {
			response := v.response(encrypt(t, good))
			samltest.Ours().Sign(t, response, sha256)
			forged := v.response(encrypt(t, evil(good, "id-evil")))
			forged.CreateAttr("ID", "id-forged")
			s := response.FindElement("./Signature").Copy()
			s.CreateElement("ds:Object").AddChild(bare(response))
			forged.InsertChildAt(1, s)
			return forged
		},
		"a whole response encrypted": func(t *testing.T, v *visit, good *etree.Element) *etree.Element {
			return v.response(encrypt(t, v.response(good.Copy())))
		},
		"the same id inside and outside": func(t *testing.T, v *visit, good *etree.Element) *etree.Element {
			response := v.response(encrypt(t, good))
			response.CreateAttr("ID", good.SelectAttrValue("ID", ""))
			return response
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			good := parsed(t, signedText(t, v))
			who, err := v.finish(t, parsed(t, text(t, wrap(t, v, good))))
			refused(t, who, err, "")
		})
	}
}

// A signature by an algorithm that is none, or that takes the public key for a secret.
func TestAlgorithms(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	for _, algorithm := range []string{
		"http://www.w3.org/2000/09/xmldsig#hmac-sha1", "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256", "none", "",
		dsig.ECDSASHA256SignatureMethod, "http://www.w3.org/2000/09/xmldsig#rsa-sha1",
	} {
		t.Run(algorithm, func(t *testing.T) {
			v := p.begin(t, r)
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, sha256)
			a.FindElement("./Signature/SignedInfo/SignatureMethod").CreateAttr("Algorithm", algorithm)
			info := etree.NewDocument()
			info.SetRoot(a.FindElement("./Signature/SignedInfo").Copy())
			canonical, err := info.WriteToBytes()
			is.New(t).NoErr(err)
			mac := hmac.New(hash.New, samltest.Ours().Cert.RawSubjectPublicKeyInfo)
			mac.Write(canonical)
			a.FindElement("./Signature/SignatureValue").SetText(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
			who, err := v.finish(t, v.response(a))
			refused(t, who, err, "")
		})
	}
	v := p.begin(t, r)
	a := v.assertion(nil)
	samltest.Ours().Sign(t, a, sha256)
	value := a.FindElement("./Signature/SignatureValue")
	value.SetText("")
	who, err := v.finish(t, v.response(a))
	refused(t, who, err, "signature of the assertion")
}

// Requests are signed where the provider wants it or the configuration says so, and never without a
// key.
func TestSignedRequests(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	yes := true
	wants := p.Metadata(t, func(e *crewjam.EntityDescriptor) { e.IDPSSODescriptors[0].WantAuthnRequestsSigned = &yes })
	keys := domains.Keys{Current: ours(samltest.Theirs())}
	for name, c := range map[string]struct {
		more   map[string]any
		keys   domains.Keys
		signed bool
	}{
		"nobody wants it":   {nil, keys, false},
		"the provider does": {map[string]any{"metadataXML": wants}, keys, true},
		"the configuration": {map[string]any{"signRequests": true}, keys, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := p.keyed(t, c.keys, c.more)
			location, _, err := r.Begin(t.Context(), at, "acme.a+b&c")
			is.NoErr(err)
			is.Equal(
				strings.Contains(
					location,
					"&SigAlg=http%3A%2F%2Fwww.w3.org%2F2001%2F04%2Fxmldsig-more%23rsa-sha256&Signature=",
				),
				c.signed,
			)
			if c.signed {
				verifyQuery(t, location)
			}
			document, _, err := r.Metadata(at)
			is.NoErr(err)
			is.Equal(strings.Contains(string(document), `AuthnRequestsSigned="true"`), c.signed)
		})
	}
	for _, more := range []map[string]any{{"metadataXML": wants}, {"signRequests": true}} {
		_, _, err := p.realm(t, more).Begin(t.Context(), at, "s")
		is.Equal(errs.CodeOf(err), errs.Upstream)
		is.True(strings.Contains(errs.MessageOf(err), "has no key yet"))
	}
}

// A provider that takes requests by HTTP-POST alone gets a form, signed in its XML.
func TestPostBinding(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	post := p.Metadata(t, func(e *crewjam.EntityDescriptor) {
		e.IDPSSODescriptors[0].SingleSignOnServices = e.IDPSSODescriptors[0].SingleSignOnServices[1:]
	})
	for _, signed := range []bool{false, true} {
		r := p.keyed(
			t, domains.Keys{Current: ours(samltest.Theirs())},
			map[string]any{"metadataXML": post, "signRequests": signed},
		)
		location, form, memory, err := r.(domains.FormLogin).BeginForm(t.Context(), at, "acme.state")
		is.NoErr(err)
		is.Equal(location, p.URL+"/sso")
		is.Equal(form.Get("RelayState"), "acme.state")
		document, err := base64.StdEncoding.DecodeString(form.Get("SAMLRequest"))
		is.NoErr(err)
		el := parsed(t, document)
		is.Equal(el.SelectAttrValue("ID", ""), string(memory))
		is.Equal(el.ChildElements()[0].Tag, "Issuer")
		if is.Equal(el.FindElement("./Signature") != nil, signed); signed {
			check := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{
				Roots: certificates(samltest.Theirs()),
			})
			_, err := check.Validate(el)
			is.NoErr(err)
		}
		_, _, err = r.Begin(t.Context(), at, "acme.state")
		is.Equal(errs.CodeOf(err), errs.Upstream)
	}
}

// A login may begin at the provider where the configuration allows it, for this service alone and
// not for long.
func TestUnasked(t *testing.T) {
	p := newIDP(t)
	answer := func(t *testing.T, change func(*crewjam.Assertion), inResponse bool) domains.Answer {
		v := p.begin(t, p.realm(t, nil))
		response := v.signedResponse(t, func(a *crewjam.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData.InResponseTo = ""
			if change != nil {
				change(a)
			}
		})
		if !inResponse {
			response.RemoveAttr("InResponseTo")
		}
		return domains.Answer{
			Params: map[string][]string{"SAMLResponse": {base64.StdEncoding.EncodeToString(text(t, response))}},
		}
	}
	is, open := is.New(t), p.realm(t, map[string]any{"idpInitiated": true}).(domains.UnaskedLogin)
	who, id, until, err := open.Accept(t.Context(), at, answer(t, nil, false))
	is.NoErr(err)
	is.Equal(who.Username, "jo")
	is.True(strings.HasPrefix(id, p.URL+"/metadata!id"))
	is.True(until.After(time.Now().Add(5*time.Minute)) && until.Before(time.Now().Add(2*time.Hour)))
	_, other, _, err := open.Accept(t.Context(), at, answer(t, nil, false))
	is.NoErr(err)
	is.True(id != other)

	made := func(from time.Duration) func(*crewjam.Assertion) {
		return func(a *crewjam.Assertion) { a.IssueInstant = time.Now().Add(from) }
	}
	response := func(at string) domains.Answer { // the response around the assertion may be unsigned
		a := answer(t, nil, false)
		document, err := base64.StdEncoding.DecodeString(a.Params["SAMLResponse"][0])
		is.NoErr(err)
		r := parsed(t, document)
		r.RemoveAttr("IssueInstant")
		if at != "" {
			r.CreateAttr("IssueInstant", at)
		}
		a.Params["SAMLResponse"] = []string{base64.StdEncoding.EncodeToString(text(t, r))}
		return a
	}
	stamp := func(from time.Duration) string { return time.Now().Add(from).UTC().Format(time.RFC3339) }
	for _, ok := range []domains.Answer{
		answer(t, made(-time.Hour), false), answer(t, made(2*time.Minute), false),
		response(stamp(-time.Hour)), response(stamp(2 * time.Minute)),
	} {
		_, _, _, err := open.Accept(t.Context(), at, ok)
		is.NoErr(err)
	}

	confirmation := func(a *crewjam.Assertion) *crewjam.SubjectConfirmationData {
		return a.Subject.SubjectConfirmations[0].SubjectConfirmationData
	}
	for name, c := range map[string]struct {
		why    string
		answer domains.Answer
	}{
		"to a request of another browser": {"in response to", answer(t, func(a *crewjam.Assertion) {
			confirmation(a).InResponseTo = "id-stolen"
		}, false)},
		"around one": {"the response is to", answer(t, nil, true)},
		"for another service": {"is for", answer(t, func(a *crewjam.Assertion) {
			a.Conditions.AudienceRestrictions[0].Audience.Value = "https://other"
		}, false)},
		"for another address": {"recipient", answer(t, func(a *crewjam.Assertion) {
			confirmation(a).Recipient = "https://other"
		}, false)},
		"for a year": {"longer than", answer(t, func(a *crewjam.Assertion) {
			confirmation(a).NotOnOrAfter = time.Now().AddDate(1, 0, 0)
		}, false)},
		"of yesterday": {"confirmed until", answer(t, func(a *crewjam.Assertion) {
			confirmation(a).NotOnOrAfter = time.Now().AddDate(0, 0, -1)
		}, false)},
		"made long ago":      {"the assertion was made", answer(t, made(-time.Hour-4*time.Minute), false)},
		"made a year ago":    {"longer ago than", answer(t, made(-365*24*time.Hour), false)},
		"made in the future": {"in the future", answer(t, made(4*time.Minute), false)},
		"made at no time": {"the assertion was made", answer(t, func(a *crewjam.Assertion) {
			a.IssueInstant = time.Time{}
		}, false)},
		"in an old response":          {"the response was made", response(stamp(-time.Hour - 4*time.Minute))},
		"in a response of the future": {"the response was made", response(stamp(4 * time.Minute))},
		"in a response of no time":    {"the response", response("")},
		"of another provider": {"the assertion is of", answer(t, func(a *crewjam.Assertion) {
			a.Issuer.Value = "https://other"
		}, false)},
	} {
		t.Run(name, func(t *testing.T) {
			who, id, _, err := open.Accept(t.Context(), at, c.answer)
			refused(t, who.Identity, err, c.why)
			if id != "" {
				t.Error("an id of an answer that is refused")
			}
		})
	}
	who, _, _, err = p.realm(t, nil).(domains.UnaskedLogin).Accept(t.Context(), at, answer(t, nil, false))
	refused(t, who.Identity, err, "set idpInitiated")
	_, err = p.realm(t, map[string]any{"idpInitiated": true}).Finish(t.Context(), at, nil, answer(t, nil, false))
	is.Equal(errs.CodeOf(err), errs.Unauthenticated) // what answers no request finishes no login of ours
}
