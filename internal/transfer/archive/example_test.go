package archive_test

import (
	"bytes"
	"fmt"
	"io"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

func Example() {
	var file bytes.Buffer
	h := archive.Header{Tenant: "acme", Counts: map[entity.Kind]int{"tag": 1}}
	w, err := archive.NewWriter(&file, h, archive.Limits{})
	check(err)
	check(w.Row(entity.Row{Key: entity.Key{Kind: "tag", ID: "0192b2a0-0000-7000-8000-000000000001"}, JSON: []byte(`{"name":"New"}`)}))
	check(w.Close())

	r, err := archive.NewReader(&file, archive.Limits{})
	check(err)
	for {
		m, err := r.Next()
		if err == io.EOF { // every checksum is right
			break
		}
		check(err)
		fmt.Println(m.Kind, m.ID, string(m.JSON))
	}
	// Output:
	// tag 0192b2a0-0000-7000-8000-000000000001 {"name":"New"}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
