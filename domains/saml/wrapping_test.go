package saml_test

import (
	"fmt"
	"testing"

	"github.com/beevik/etree"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// evil returns an unsigned copy of an assertion that says that it is about admin.
func evil(signed *etree.Element, id string) *etree.Element {
	e := signed.Copy()
	if s := e.FindElement("./Signature"); s != nil {
		e.RemoveChild(s)
	}
	e.CreateAttr("ID", id)
	e.FindElement("./AttributeStatement/Attribute[@FriendlyName='uid']/AttributeValue").SetText("admin")
	return e
}

// bare returns a copy without its signature.
func bare(el *etree.Element) *etree.Element {
	e := el.Copy()
	e.RemoveChild(e.FindElement("./Signature"))
	return e
}

// Signature wrapping, in the eight ways that SAML Raider knows, each with an id of its own and with
// that of what is signed: what is signed is moved where nobody reads it, and something else is
// read.
func TestWrapping(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	for name, wrap := range map[string]func(response *etree.Element, id string) *etree.Element{
		"1: signed response in the signature": func(response *etree.Element, id string) *etree.Element {
			forged := evilResponse(response, id)
			forged.FindElement("./Signature").AddChild(bare(response))
			return forged
		},
		"2: signed response before the signature": func(response *etree.Element, id string) *etree.Element {
			forged := evilResponse(response, id)
			forged.InsertChildAt(1, bare(response))
			return forged
		},
		"3: evil assertion first": func(response *etree.Element, id string) *etree.Element {
			a := response.FindElement("./Assertion")
			response.InsertChildAt(a.Index(), evil(a, id))
			return response
		},
		"4: signed assertion in the evil one": func(response *etree.Element, id string) *etree.Element {
			a := response.FindElement("./Assertion")
			e := evil(a, id)
			e.AddChild(a)
			response.AddChild(e)
			return response
		},
		"5: evil assertion with the signature, signed one behind": func(
			response *etree.Element, id string,
		) *etree.Element {
			a := response.FindElement("./Assertion")
			e := evil(a, id)
			e.InsertChildAt(1, a.FindElement("./Signature").Copy())
			response.InsertChildAt(a.Index(), e)
			response.AddChild(bare(a))
			response.RemoveChild(a)
			return response
		},
		"6: signed assertion in the signature of the evil one": func(
			response *etree.Element, id string,
		) *etree.Element {
			a := response.FindElement("./Assertion")
			e := evil(a, id)
			s := a.FindElement("./Signature").Copy()
			s.AddChild(bare(a))
			e.InsertChildAt(1, s)
			response.RemoveChild(a)
			response.AddChild(e)
			return response
		},
		"7: evil assertion in Extensions": func(response *etree.Element, id string) *etree.Element {
			a := response.FindElement("./Assertion")
			extensions := etree.NewElement("samlp:Extensions")
			extensions.AddChild(evil(a, id))
			response.InsertChildAt(a.Index(), extensions)
			return response
		},
		"8: signed assertion in an Object of the signature": func(response *etree.Element, id string) *etree.Element {
			a := response.FindElement("./Assertion")
			e := evil(a, id)
			s := a.FindElement("./Signature").Copy()
			s.CreateElement("ds:Object").AddChild(bare(a))
			e.InsertChildAt(1, s)
			response.RemoveChild(a)
			response.AddChild(e)
			return response
		},
		"two that are signed": func(response *etree.Element, id string) *etree.Element {
			a := response.FindElement("./Assertion").Copy()
			response.AddChild(a)
			return response
		},
		"evil one in another namespace": func(response *etree.Element, id string) *etree.Element {
			a := response.FindElement("./Assertion")
			e := evil(a, id)
			e.CreateAttr("xmlns:saml", "urn:evil")
			response.InsertChildAt(a.Index(), e)
			return response
		},
	} {
		for _, id := range []string{"id-evil", "the signed one's"} {
			for _, whole := range []bool{true, false} {
				if !whole && name[0] <= '2' { // these move the response's signature
					continue
				}
				t.Run(fmt.Sprintf("%s, id %s, response signed %t", name, id, whole), func(t *testing.T) {
					v := p.begin(t, r)
					response := v.signedResponse(t, nil)
					if whole {
						samltest.Ours().Sign(t, response, sha256)
					}
					if id != "id-evil" {
						id = v.request.Assertion.ID
					}
					who, err := v.finish(t, wrap(parsed(t, text(t, response)), id))
					refused(t, who, err, "more than one assertion")
				})
			}
		}
	}
}

// evilResponse returns a copy of a response with its signature, and with an evil assertion.
func evilResponse(response *etree.Element, id string) *etree.Element {
	forged := response.Copy()
	forged.CreateAttr("ID", "id-forged")
	a := forged.FindElement("./Assertion")
	forged.AddChild(evil(a, id))
	forged.RemoveChild(a)
	return forged
}

// Wrapping without a second assertion: the signed element goes by another name, or the one that is
// read does.
func TestWrappingByName(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	for name, c := range map[string]struct {
		why    string
		rename func(signed, evil *etree.Element)
	}{
		"the signed one": {"signature", func(signed, evil *etree.Element) {
			evil.InsertChildAt(1, signed.FindElement("./Signature").Copy())
			signed.Tag = "assertion"
		}},
		"the signed one, in place": {"is signed", func(signed, evil *etree.Element) { signed.Tag = "assertion" }},
		"the evil one":             {"", func(signed, evil *etree.Element) { evil.Tag = "assertion" }},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			v := p.begin(t, r)
			response := v.signedResponse(t, nil)
			a := response.FindElement("./Assertion")
			e := evil(a, "id-evil")
			c.rename(a, e)
			response.InsertChildAt(a.Index(), e)
			who, err := v.finish(t, response)
			if c.why == "" {
				is.NoErr(err)
				is.Equal(who.Username, "jo") // nobody reads it
				return
			}
			refused(t, who, err, c.why)
		})
	}
}

// Namespaces around the assertion are not signed with it, and change nothing of what is read.
func TestRebinding(t *testing.T) {
	is := is.New(t)
	p := newIDP(t)
	v := p.begin(t, p.realm(t, nil))
	response := v.signedResponse(t, nil)
	extensions := etree.NewElement("samlp:Extensions")
	extensions.CreateAttr("xmlns:saml", "urn:evil")
	extensions.CreateElement("saml:Thing")
	response.AddChild(extensions)
	who, err := v.finish(t, response)
	is.NoErr(err)
	is.Equal(who.Username, "jo")
}
