package hal_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/hal"
)

func TestArrayOfLinks(t *testing.T) {
	links := hal.Self("s")
	links["inf:print"] = hal.Link{All: []hal.Link{{Href: "a"}, {Href: "b{?x}", Templated: true}}}
	is.New(t).Equal(encode(t, hal.Resource{Links: links, Value: struct{}{}}),
		`{"_links":{"inf:print":[{"href":"a"},{"href":"b{?x}","templated":true}],"self":{"href":"s"}}}`)
}
