package bundles

import (
	"iter"

	"github.com/tenantcontent/tenantcontent/entity"
)

// fetched is what a sequence of rows gave, or that it panicked.
type fetched struct {
	row   entity.Row
	err   error
	panic any
}

// ahead reads rows while their taker works on those before, in a goroutine that is over when the sequence is. It is for
// rows that are read outside of a transaction: that is for one goroutine at a time.
func ahead(rows iter.Seq2[entity.Row, error]) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		next, enough := make(chan fetched, rowBatch), make(chan struct{})
		go func() {
			defer close(next)
			defer func() {
				if p := recover(); p != nil {
					next <- fetched{panic: p}
				}
			}()
			for row, err := range rows {
				select {
				case next <- fetched{row: row, err: err}:
				case <-enough:
					return
				}
			}
		}()
		defer func() {
			close(enough)
			for range next { // until it is over
			}
		}()
		for f := range next {
			if f.panic != nil {
				panic(f.panic)
			}
			if !yield(f.row, f.err) {
				return
			}
		}
	}
}

// rowsOf gives the rows of a kind's pieces, asked for batch by batch.
func rowsOf(ids []string, export func(ids []string) iter.Seq2[entity.Row, error]) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		for len(ids) > 0 {
			some := ids[:min(rowBatch, len(ids))]
			ids = ids[len(some):]
			for row, err := range export(some) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}
