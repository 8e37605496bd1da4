package saml_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// A trial tells what was found, and ends with the first thing that is wrong.
func TestTrial(t *testing.T) {
	p := newIDP(t)
	yes := true
	keys := domains.Keys{Current: ours(samltest.Theirs())}
	old := samltest.NewSigner(time.Now().Add(-time.Hour))
	for name, c := range map[string]struct {
		keys   domains.Keys
		change func(*crewjam.EntityDescriptor)
		more   map[string]any
		names  string
		ok     bool
		last   string
	}{
		"all is well":  {keys, nil, nil, "metadata keys signing encryption", true, "for 1 keys"},
		"without keys": {domains.Keys{}, nil, nil, "metadata keys signing encryption", true, "no key yet"},
		"signed": {keys, func(e *crewjam.EntityDescriptor) {
			e.IDPSSODescriptors[0].WantAuthnRequestsSigned = &yes
		}, nil, "metadata keys signing encryption", true, ""},
		"nothing to sign": {
			domains.Keys{}, nil, map[string]any{"signRequests": true}, "metadata keys signing", false,
			"roll its keys",
		},
		"a key that ended": {keys, func(e *crewjam.EntityDescriptor) {
			e.IDPSSODescriptors[0].KeyDescriptors = []crewjam.KeyDescriptor{old.Descriptor()}
		}, nil, "metadata keys", false, "None of them is valid"},
		"ended": {keys, func(e *crewjam.EntityDescriptor) {
			e.ValidUntil = time.Now().Add(-time.Hour)
		}, nil, "metadata", false, "validUntil"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			config := map[string]any{"metadataXML": p.Metadata(t, c.change)}
			for member, value := range c.more {
				config[member] = value
			}
			text, err := json.Marshal(config)
			is.NoErr(err)
			r, err := saml.Driver{}.OpenWithKeys(text, c.keys)
			is.NoErr(err)
			var names []string
			steps := r.(domains.Tester).Test(t.Context(), at, "jo")
			for i, s := range steps {
				names = append(names, s.Name)
				is.Equal(s.OK, c.ok || i < len(steps)-1)
			}
			is.Equal(strings.Join(names, " "), c.names)
			is.True(strings.Contains(steps[len(steps)-1].Message, c.last))
		})
	}
	is := is.New(t)
	w := &web{answer: page(http.StatusNotFound, "")}
	steps := w.open(t).(domains.Tester).Test(t.Context(), at, "")
	is.Equal(len(steps), 1)
	is.True(!steps[0].OK && strings.Contains(steps[0].Message, "no SAML metadata is there"))
}
