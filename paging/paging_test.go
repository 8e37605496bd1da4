package paging_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

func TestOrder(t *testing.T) {
	for sort, want := range map[string]string{"": "b desc", "a": "a", "-a": "a desc", "b": "b", "-b": "b desc"} {
		is := is.New(t)
		field, desc, err := paging.Query{Sort: sort}.Order("-b", "a", "b")
		is.NoErr(err)
		if desc {
			field += " desc"
		}
		is.Equal(field, want)
	}
	for _, sort := range []string{"c", "-", "--a", "a-", "A", " a", "+a", "a,b", "a desc", "a;"} {
		is := is.New(t)
		_, _, err := paging.Query{Sort: sort}.Order("a", "a", "b")
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), "a, b"))
	}
}

func TestMap(t *testing.T) {
	is, last := is.New(t), &paging.Position{Value: "2", Key: "k"}
	got := paging.Map(paging.Page[int]{Rows: []int{1, 2}, Total: 9, Last: last}, strconv.Itoa)
	is.Equal(got, paging.Page[string]{Rows: []string{"1", "2"}, Total: 9, Last: last})
	is.True(paging.Map(paging.Page[int]{}, strconv.Itoa).Rows != nil) // an empty list, not null
}

func TestChecked(t *testing.T) {
	is := is.New(t)
	for _, c := range []struct {
		q    paging.Query
		want int // rows
	}{
		{paging.Query{}, paging.DefaultLimit},
		{paging.Query{Limit: 1}, 1}, {paging.Query{Limit: paging.MaxLimit}, paging.MaxLimit},
		{paging.Query{CountOnly: true}, 0}, {paging.Query{CountOnly: true, Limit: 7}, 0},
	} {
		q, err := c.q.Checked()
		is.NoErr(err)
		is.Equal(q.Limit, c.want)
		again, err := q.Checked()
		is.NoErr(err)
		is.Equal(again, q)
	}
	row := &paging.Position{}
	for q, field := range map[paging.Query]string{
		{Start: -1}: "start ", {Limit: -1}: "limit ",
		{Limit: paging.MaxLimit + 1}: "limit ", {After: row, Before: row}: "after and before ",
	} {
		_, err := q.Checked()
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.HasPrefix(errs.MessageOf(err), field))
	}
}
