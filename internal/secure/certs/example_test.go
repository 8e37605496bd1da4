package certs_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

func ExampleRead() {
	_, err := certs.Read("caCert", "-----BEGIN PRIVATE KEY-----")
	fmt.Println(err)
	// Output: caCert must be certificates in PEM: a private key is among them, which must stay where it belongs
}
