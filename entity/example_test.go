package entity_test

import (
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Archives contain no secrets. An import keeps those that the tenant has.
func ExampleMaskSecrets() {
	here := json.RawMessage(`{"url": "https://a.example", "apiKey": "s3cret"}`)
	row := entity.MaskSecrets(here)
	fmt.Println(string(row))
	kept, lost := entity.KeepSecrets(row, here)
	fmt.Println(string(kept), lost)
	kept, lost = entity.KeepSecrets(row, nil) // a tenant without the entity
	fmt.Println(string(kept), lost)
	// Output:
	// {"url": "https://a.example", "apiKey": "********"}
	// {"url": "https://a.example", "apiKey": "s3cret"} 0
	// {"url": "https://a.example"} 1
}
