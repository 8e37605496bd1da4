package paging_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/paging"
)

func ExampleAll() {
	letters := []string{"a", "b", "c", "d", "e"}
	all := paging.All(paging.Query{Limit: 2}, func(q paging.Query) (paging.Page[string], error) {
		end := min(q.Start+q.Limit, len(letters))
		fmt.Println("rows from", q.Start)
		return paging.Page[string]{Rows: letters[q.Start:end], Total: len(letters), More: end < len(letters)}, nil
	})
	for letter, err := range all {
		fmt.Println(letter, err)
	}
	// Output:
	// rows from 0
	// a <nil>
	// b <nil>
	// rows from 2
	// c <nil>
	// d <nil>
	// rows from 4
	// e <nil>
}
