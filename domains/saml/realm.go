package saml

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"time"

	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// realm is one configured domain.
type realm struct {
	provider   metadata
	entityID   string            // what the provider calls this service, "" for the address of its metadata
	attributes map[string]string // Info's Defaults, as configured
	denied     bool              // connections to the address of the metadata
}

// Check implements domains.Realm.
func (r *realm) Check() error {
	if r.denied {
		return domains.DeniedAddress("metadataURL")
	}
	return nil
}

// service is the entity id of this service.
func (r *realm) service(at domains.Endpoints) string {
	if r.entityID != "" {
		return r.entityID
	}
	return at.Metadata
}

// Begin returns the provider's address with a request to log somebody in; the request's id is what Finish must know. SAML
// has room for a state of 80 bytes.
func (r *realm) Begin(ctx context.Context, at domains.Endpoints, state string) (location string, memory []byte, err error) {
	p, err := r.provider(ctx)
	if err != nil {
		return "", nil, err
	}
	create := true
	request := crewjam.AuthnRequest{
		ID:                          newID(),
		IssueInstant:                time.Now().UTC(),
		Version:                     version,
		Destination:                 p.login,
		AssertionConsumerServiceURL: at.ACS,
		ProtocolBinding:             crewjam.HTTPPostBinding,
		Issuer:                      &crewjam.Issuer{Value: r.service(at)},
		NameIDPolicy:                &crewjam.NameIDPolicy{AllowCreate: &create}, // of any format
	}
	u, err := request.Redirect(url.QueryEscape(state), &crewjam.ServiceProvider{})
	if err != nil {
		return "", nil, err
	}
	return u.String(), []byte(request.ID), nil
}

// version is SAML's, in requests, responses and assertions.
const version = "2.0"

// newID makes an id of a request that nobody can guess. XML's ids begin with a letter.
func newID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return "id-" + hex.EncodeToString(b[:])
}

// Finish checks the provider's response. Errors: errs.Unauthenticated with the reason as its cause; errs.Upstream.
func (r *realm) Finish(ctx context.Context, at domains.Endpoints, memory []byte, answer domains.Answer) (domains.SignedIn, error) {
	p, err := r.provider(ctx)
	if err != nil {
		return domains.SignedIn{}, err
	}
	who, err := r.identify(p, at, string(memory), answer.Params["SAMLResponse"])
	if err != nil {
		return domains.SignedIn{}, errs.Wrap(errs.Unauthenticated, err, "Unable to log in")
	}
	return domains.SignedIn{Identity: who}, nil
}

// identify returns the person that a response is about.
func (r *realm) identify(p *provider, at domains.Endpoints, request string, responses []string) (domains.Identity, error) {
	if len(responses) != 1 || len(responses[0]) > 2*maxDocument {
		return domains.Identity{}, errors.New("there is not one SAMLResponse of a sensible size")
	}
	document, err := base64.StdEncoding.DecodeString(responses[0])
	if err != nil {
		return domains.Identity{}, fmt.Errorf("the SAMLResponse is not in base64: %w", err)
	}
	e := expected{provider: p.entityID, service: r.service(at), acs: at.ACS, request: request, now: time.Now()}
	a, err := p.read(document, e)
	if err != nil {
		return domains.Identity{}, err
	}
	return r.identity(p, a)
}

// Metadata describes this service. It has no validUntil, as many providers read it once.
func (r *realm) Metadata(at domains.Endpoints) (document []byte, contentType string, err error) {
	yes, no := true, false
	document, err = xml.MarshalIndent(entity{
		EntityID: r.service(at),
		Service: crewjam.SPSSODescriptor{
			SSODescriptor:        crewjam.SSODescriptor{RoleDescriptor: crewjam.RoleDescriptor{ProtocolSupportEnumeration: saml2}},
			AuthnRequestsSigned:  &no,
			WantAssertionsSigned: &yes,
			AssertionConsumerServices: []crewjam.IndexedEndpoint{
				{Binding: crewjam.HTTPPostBinding, Location: at.ACS, Index: 0, IsDefault: &yes},
			},
		},
	}, "", "  ")
	return append([]byte(xml.Header), document...), "application/samlmetadata+xml", err
}

// entity is metadata of this service. crewjam's type cannot leave out until when it is valid.
type entity struct {
	XMLName  xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
	EntityID string   `xml:"entityID,attr"`
	Service  crewjam.SPSSODescriptor
}
