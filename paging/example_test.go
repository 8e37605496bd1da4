package paging_test

import (
	"fmt"

	"github.com/tenantcontent/tenantcontent/paging"
)

func ExampleEach() {
	letters := []string{"a", "b", "c", "d", "e"}
	err := paging.Each(paging.Query{Limit: 2}, func(q paging.Query) (paging.Page[string], error) {
		end := min(q.Start+q.Limit, len(letters))
		fmt.Println("rows from", q.Start)
		return paging.Page[string]{Rows: letters[q.Start:end], Total: len(letters), More: end < len(letters)}, nil
	}, func(letter string) { fmt.Println(letter) })
	fmt.Println(err)
	// Output:
	// rows from 0
	// a
	// b
	// rows from 2
	// c
	// d
	// rows from 4
	// e
	// <nil>
}
