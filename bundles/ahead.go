package bundles

import (
	"errors"
	"io"
	"iter"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// fetched is an element of a sequence, or the panic that ended it.
type fetched[T any] struct {
	it    T
	err   error
	panic any
}

// ahead runs a sequence in a goroutine, one element ahead of its consumer. The goroutine ends with
// the sequence. It must not be used in a transaction, which only one goroutine may use.
func ahead[T any](all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		next, enough := make(chan fetched[T]), make(chan struct{})
		go func() {
			defer close(next)
			defer func() {
				if p := recover(); p != nil {
					next <- fetched[T]{panic: p}
				}
			}()
			for it, err := range all {
				select {
				case next <- fetched[T]{it: it, err: err}:
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
			if !yield(f.it, f.err) {
				return
			}
		}
	}
}

// rowsOf returns the rows of a kind's entities, exported in batches.
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

// groupBytes is how many bytes a group of rows has at most, but for the row that passes it.
const groupBytes = 512 << 10

// aheadOf is ahead for rows, in groups that are neither long nor heavy: the consumer may wait for a
// slow client.
func aheadOf(rows iter.Seq2[entity.Row, error]) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		for group, err := range ahead(groups(rows)) {
			for _, row := range group {
				if !yield(row, nil) {
					return
				}
			}
			if err != nil {
				yield(entity.Row{}, err)
				return
			}
		}
	}
}

// groups returns rows in groups of at most rowBatch rows that end with the row that passes
// groupBytes.
func groups(rows iter.Seq2[entity.Row, error]) iter.Seq2[[]entity.Row, error] {
	return func(yield func([]entity.Row, error) bool) {
		var group []entity.Row
		size := 0
		for row, err := range rows {
			if err != nil {
				yield(group, err)
				return
			}
			group, size = append(group, row), size+len(row.JSON)
			if len(group) == rowBatch || size > groupBytes {
				if !yield(group, nil) {
					return
				}
				group, size = nil, 0
			}
		}
		if len(group) > 0 {
			yield(group, nil)
		}
	}
}

// batches returns the rows of an archive as they are imported: each batch is of one kind. behind
// becomes the first file, if there is one.
func batches(r *archive.Reader, behind *archive.Member) iter.Seq2[[]entity.Row, error] {
	return func(yield func([]entity.Row, error) bool) {
		rows, size := []entity.Row{}, 0
		for {
			m, err := r.Next()
			full := len(rows) == rowBatch || size+len(m.JSON) > batchBytes
			if len(rows) > 0 && (full || err != nil || m.File != nil || m.Kind != rows[0].Kind) {
				if !yield(rows, nil) {
					return
				}
				rows, size = make([]entity.Row, 0, rowBatch), 0
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			case m.File != nil:
				*behind = m
				return
			}
			rows, size = append(rows, entity.Row{Key: m.Key, JSON: m.JSON}), size+len(m.JSON)
		}
	}
}
