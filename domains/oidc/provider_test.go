package oidc_test

import (
	"testing"

	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

const (
	clientID = oidctest.ClientID
	secret   = oidctest.Secret
	document = oidctest.Document
)

type object = oidctest.Object

// idp is a provider at which a test opens domains.
type idp struct{ *oidctest.Provider }

func newProvider(t *testing.T) *idp { return &idp{oidctest.New(t)} }
