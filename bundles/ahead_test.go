package bundles

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/matryer/is"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/entity"
)

func numbered(n int, end func()) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		for i := range n {
			if !yield(entity.Row{Key: entity.Key{ID: fmt.Sprint(i)}}, nil) {
				return
			}
		}
		end()
	}
}

// TestAhead: the same rows, errors and panics, and no goroutine that outlives them.
func TestAhead(t *testing.T) {
	is, fault := is.New(t), errors.New("fault")
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, n := range []int{0, 1, rowBatch, 3*rowBatch + 1} {
		got := 0
		for row, err := range ahead(numbered(n, func() {})) {
			is.NoErr(err)
			is.Equal(row.ID, fmt.Sprint(got))
			got++
		}
		is.Equal(got, n)
	}
	for range ahead(numbered(5*rowBatch, func() { t.Error("read to the end") })) {
		break
	}
	var last error
	for _, err := range ahead(func(yield func(entity.Row, error) bool) { yield(entity.Row{}, fault) }) {
		last = err
	}
	is.Equal(last, fault)
	defer func() { is.Equal(recover(), "oh") }()
	for range ahead(numbered(7, func() { panic("oh") })) {
	}
}
