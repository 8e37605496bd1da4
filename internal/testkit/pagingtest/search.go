package pagingtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// searched are the rows of TestSearch: their names and the texts of another field.
var searched = map[string]string{
	"Crème Brûlée":    "dessert of the house",
	"Cafe\u0301 Łódź": "Straße nach Süden",
	"ΑΘΗΝΑ":           "Ёлка İstanbul",
	"हिन्दी が ﬁne":    "100% a_b",
	"plain":           "annual report 2026",
}

// searches are the names of the rows that a q finds, separated by commas.
var searches = map[string]string{
	"creme": "Crème Brûlée", "BRULEE CRE": "Crème Brûlée", "cre\u0300me hOuse": "Crème Brûlée",
	"dessert brûlée": "Crème Brûlée", "crème plain": "", "creme creme": "Crème Brûlée",
	"cafe": "Cafe\u0301 Łódź", "CAFÉ lodz strasse suden": "Cafe\u0301 Łódź",
	"αθήνα": "ΑΘΗΝΑ", "елка istanbul": "ΑΘΗΝΑ", "İSTANBUL Αθη": "ΑΘΗΝΑ",
	"हिन्दी": "हिन्दी が ﬁne", "हनद": "", "が": "हिन्दी が ﬁne", "か": "", "fine": "हिन्दी が ﬁne",
	"a_b %": "हिन्दी が ﬁne", "a__b": "", "report annual": "plain", `"annual report"`: "plain", `"report annual"`: "",
	"annual\u3000 \treport\n": "plain", `"annual report" PLAIN`: "plain",
	" \u00a0\u3000 ": "Cafe\u0301 Łódź,Crème Brûlée,plain,ΑΘΗΝΑ,हिन्दी が ﬁne",
}

// TestSearch checks which rows q finds. add inserts the nth row with a name and another text into
// the list of acme; both may be in one field. name returns the name of a row of a page, or a text
// that begins with it. The list may have other rows.
func TestSearch[T any](
	t *testing.T, add func(t *testing.T, n int, name, text string),
	page func(ctx context.Context, tenant string, q paging.Query) (paging.Page[T], error), name func(T) string,
) {
	t.Helper()
	is := is.New(t)
	for n, row := range slices.Sorted(maps.Keys(searched)) {
		add(t, n+1, row, searched[row])
	}
	for q, want := range searches {
		p, err := page(t.Context(), "acme", paging.Query{Limit: 20, Q: q})
		is.NoErr(err)
		got := make([]string, 0, len(p.Rows))
		for _, row := range p.Rows {
			for of := range searched {
				if strings.HasPrefix(name(row), of) {
					got = append(got, of)
				}
			}
		}
		slices.Sort(got)
		if all := strings.TrimSpace(q) == ""; strings.Join(got, ",") != want || !all && p.Total != len(got) {
			t.Errorf("%q finds %q of %d, not %q", q, got, p.Total, want)
		}
		if strings.TrimSpace(q) != "" {
			p, err := page(t.Context(), "evil", paging.Query{Limit: 20, Q: q})
			is.NoErr(err)
			is.Equal(p.Total, 0)
		}
	}
	_, err := page(t.Context(), "acme", paging.Query{Limit: 20, Q: words(21)})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	is.True(strings.HasPrefix(errs.MessageOf(err), "q "))
	_, err = page(t.Context(), "acme", paging.Query{Limit: 20, Q: words(20)})
	is.NoErr(err)
}

// words returns some different words.
func words(n int) string {
	var all []string
	for i := range n {
		all = append(all, "w"+strings.Repeat("é", i)+"w")
	}
	return strings.Join(all, " ")
}
