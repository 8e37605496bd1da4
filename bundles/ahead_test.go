package bundles

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/matryer/is"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
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
		type rows = iter.Seq2[entity.Row, error]
		for _, ahead := range []func(rows) rows{ahead[entity.Row], aheadOf} {
			got := 0
			for row, err := range ahead(numbered(n, func() {})) {
				is.NoErr(err)
				is.Equal(row.ID, fmt.Sprint(got))
				got++
			}
			is.Equal(got, n)
		}
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

// TestGroups: rows wait for their taker in groups that are neither long nor heavy, and an error
// comes behind those before it.
func TestGroups(t *testing.T) {
	is, fault := is.New(t), errors.New("fault")
	row := func(size int) entity.Row { return entity.Row{JSON: make([]byte, size)} }
	rows := func(yield func(entity.Row, error) bool) {
		for range rowBatch + 1 {
			if !yield(row(1), nil) {
				return
			}
		}
		for range 5 {
			if !yield(row(groupBytes*2/3), nil) {
				return
			}
		}
		yield(entity.Row{}, fault)
	}
	var sizes []int
	var last error
	for group, err := range groups(rows) {
		sizes, last = append(sizes, len(group)), err
	}
	is.Equal(sizes, []int{rowBatch, 3, 2, 1})
	is.Equal(last, fault)
	n := 0
	for _, err := range aheadOf(rows) {
		if last = err; err == nil {
			n++
		}
	}
	is.Equal(n, rowBatch+6)
	is.Equal(last, fault)
}

// TestBatches: each is of one kind and neither long nor heavy, and the files come behind them.
func TestBatches(t *testing.T) {
	is := is.New(t)
	row := func(kind entity.Kind, id, size int) entity.Row {
		return entity.Row{
			Key:  entity.Key{Kind: kind, ID: fmt.Sprint(id)},
			JSON: fmt.Appendf(nil, `{"a":"%s"}`, strings.Repeat("x", size)),
		}
	}
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, archive.Header{
		Counts: map[entity.Kind]int{"few": 2, "heavy": 5, "many": rowBatch + 1},
	}, archive.Limits{})
	is.NoErr(err)
	for i := range rowBatch + 1 {
		is.NoErr(w.Row(row("many", i, 0)))
	}
	for i := range 2 {
		is.NoErr(w.Row(row("few", i, 0)))
	}
	for i := range 5 {
		is.NoErr(w.Row(row("heavy", i, batchBytes/3)))
	}
	is.NoErr(w.File("0", entity.File{Path: "f", Size: 1}, strings.NewReader("x")))
	is.NoErr(w.Close())

	r, err := archive.NewReader(&file, archive.Limits{})
	is.NoErr(err)
	var behind archive.Member
	var sizes []string
	for rows, err := range batches(r, &behind) {
		is.NoErr(err)
		sizes = append(sizes, fmt.Sprint(rows[0].Kind, len(rows)))
		is.Equal(rows[len(rows)-1].Kind, rows[0].Kind)
	}
	is.Equal(sizes, []string{fmt.Sprint("many", rowBatch), "many1", "few2", "heavy2", "heavy2", "heavy1"})
	is.Equal(behind.File.Path, "f")
}
