package saml

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Test implements domains.Tester. It cannot look for a person: only a log-in tells who that is.
func (r *realm) Test(ctx context.Context, at domains.Endpoints, _ string) []domains.Step {
	p, err := r.source.discover(ctx)
	if err != nil {
		return []domains.Step{{Name: "metadata", Message: "The metadata cannot be used: " + errs.MessageOf(err)}}
	}
	steps := []domains.Step{{Name: "metadata", OK: true, Message: r.sayMetadata(p, at)}}
	keys := p.keysStep(time.Now())
	if steps = append(steps, keys); !keys.OK {
		return steps
	}
	signing := r.saySigning(p)
	if steps = append(steps, signing); !signing.OK {
		return steps
	}
	return append(steps, r.sayEncryption())
}

func (r *realm) sayMetadata(p *provider, at domains.Endpoints) string {
	binding, until, unasked :=
		"HTTP-Redirect", "without an end", "Log-ins that begin at the provider are refused (idpInitiated)."
	if p.login.posts() {
		binding = "HTTP-POST"
	}
	if !p.ends.IsZero() {
		until = "until " + day(p.ends)
	}
	if r.unasked {
		unasked = "Log-ins may begin at the provider (idpInitiated)."
	}
	logout := "It has no single logout."
	if p.logout.location != "" {
		logout = fmt.Sprintf("People are logged out there, too (single logout): register %s for that.", at.SLO)
	}
	return fmt.Sprintf("The provider is %s, and its metadata is valid %s. Requests go to %s by %s. %s Register %s "+
		"there as metadata, or %s as entity id and %s as address for answers (ACS). %s",
		p.entityID, until, p.login.location, binding, unasked, at.Metadata, r.service(at), at.ACS, logout)
}

// keysStep reports the keys that the provider signs with. A key is valid as long as its
// certificate.
func (p *provider) keysStep(now time.Time) domains.Step {
	var all []string
	step := domains.Step{Name: "keys"}
	for _, c := range p.keys {
		state := "until " + day(c.NotAfter)
		switch {
		case now.Before(c.NotBefore):
			state = "not before " + day(c.NotBefore)
		case now.After(c.NotAfter):
			state = "ended on " + day(c.NotAfter)
		default:
			step.OK = true
		}
		all = append(all, keyType(c)+" "+state)
	}
	step.Message = fmt.Sprintf(
		"The provider signs with %s: %s.", domains.Number(len(all), "key", "keys"), strings.Join(all, ", "),
	)
	if !step.OK {
		step.Message += " None of them is valid now: get the provider's metadata anew."
	}
	return step
}

func keyType(c *x509.Certificate) string {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA %d", key.N.BitLen())
	case *ecdsa.PublicKey:
		return fmt.Sprintf("ECDSA %d", key.Params().BitSize)
	}
	return c.PublicKeyAlgorithm.String()
}

func (r *realm) saySigning(p *provider) domains.Step {
	wants := "The provider does not want requests signed"
	if p.signed {
		wants = "The provider wants requests signed"
	}
	key, err := r.signer(p)
	switch {
	case err != nil:
		return domains.Step{
			Name:    "signing",
			Message: wants + ", or signRequests is set, and this domain has no key yet: save it, or roll its keys.",
		}
	case key == nil:
		return domains.Step{
			Name:    "signing",
			OK:      true,
			Message: wants + ", and they go unsigned. signRequests signs them all the same.",
		}
	}
	return domains.Step{Name: "signing",
		OK: true,
		Message: fmt.Sprintf("%s, and they are signed with RSA-SHA256. The certificate in this domain's metadata "+
			"is valid until %s.",
			wants, day(key.Certificate.NotAfter))}
}

func (r *realm) sayEncryption() domains.Step {
	step := domains.Step{Name: "encryption", OK: true}
	if r.keys.Current == nil {
		step.Message = "Assertions must come in the clear: this domain has no key yet. Save it or roll its keys " +
			"to offer one."
		return step
	}
	step.Message = fmt.Sprintf("Assertions may be encrypted, by RSA-OAEP and AES with GCM or CBC, for %d keys; "+
		"the one in this domain's metadata is valid until %s.",
		len(r.keys.All()), day(r.keys.Current.Certificate.NotAfter))
	return step
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
