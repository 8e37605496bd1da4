package saml

import (
	"encoding/base64"
	"encoding/xml"

	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/domains"
)

// Metadata describes this service. It has no validUntil, as many providers read it once.
func (r *realm) Metadata(at domains.Endpoints) (document []byte, contentType string, err error) {
	yes, signs := true, r.signs
	if p := r.source.known(); p != nil && p.signed {
		signs = true
	}
	signs = signs && r.keys.Current != nil
	document, err = xml.MarshalIndent(entity{
		EntityID: r.service(at),
		Service: crewjam.SPSSODescriptor{
			SSODescriptor: crewjam.SSODescriptor{RoleDescriptor: crewjam.RoleDescriptor{
				ProtocolSupportEnumeration: saml2,
				KeyDescriptors:             r.keyDescriptors(),
			}, SingleLogoutServices: r.logouts(at)},
			AuthnRequestsSigned:  &signs,
			WantAssertionsSigned: &yes,
			AssertionConsumerServices: []crewjam.IndexedEndpoint{
				{Binding: crewjam.HTTPPostBinding, Location: at.ACS, Index: 0, IsDefault: &yes},
			},
		},
	}, "", "  ")
	return append([]byte(xml.Header), document...), "application/samlmetadata+xml", err
}

// logouts returns where the provider sends messages about logouts: nowhere without a key that signs
// the answers.
func (r *realm) logouts(at domains.Endpoints) []crewjam.Endpoint {
	if r.keys.Current == nil {
		return nil
	}
	return []crewjam.Endpoint{
		{Binding: crewjam.HTTPRedirectBinding, Location: at.SLO},
		{Binding: crewjam.HTTPPostBinding, Location: at.SLO},
	}
}

// entity is metadata of this service. crewjam's type cannot leave out until when it is valid.
type entity struct {
	XMLName  xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
	EntityID string   `xml:"entityID,attr"`
	Service  crewjam.SPSSODescriptor
}

// keyDescriptors are the keys that the provider should know: those that sign or will sign, and the
// one to encrypt for.
func (r *realm) keyDescriptors() []crewjam.KeyDescriptor {
	var all []crewjam.KeyDescriptor
	for _, pair := range []*domains.KeyPair{r.keys.Current, r.keys.Next} {
		if pair != nil {
			all = append(all, descriptor("signing", *pair))
		}
	}
	if r.keys.Current == nil {
		return nil
	}
	encryption := descriptor("encryption", *r.keys.Current)
	for _, c := range ciphers {
		encryption.EncryptionMethods = append(
			encryption.EncryptionMethods, crewjam.EncryptionMethod{Algorithm: c.algorithm},
		)
	}
	encryption.EncryptionMethods = append(encryption.EncryptionMethods, crewjam.EncryptionMethod{Algorithm: oaepMGF1})
	return append(all, encryption)
}

func descriptor(use string, pair domains.KeyPair) crewjam.KeyDescriptor {
	return crewjam.KeyDescriptor{Use: use, KeyInfo: crewjam.KeyInfo{X509Data: crewjam.X509Data{
		X509Certificates: []crewjam.X509Certificate{{Data: base64.StdEncoding.EncodeToString(pair.Certificate.Raw)}},
	}}}
}
