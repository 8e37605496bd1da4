package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/scim"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// scimQuery is the query of a request for resources, in its address or, below .search, in its body.
type scimQuery struct {
	Attributes         []string `json:"attributes"`
	ExcludedAttributes []string `json:"excludedAttributes"`
	Filter             string   `json:"filter"`
	SortBy             string   `json:"sortBy"`
	SortOrder          string   `json:"sortOrder"`
	StartIndex         *int     `json:"startIndex"`
	Count              *int     `json:"count"`
}

func scimQueryOf(r *rest.Request) (q scimQuery, err error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/.search") {
		raw, err := scimBodyOf(r)
		if err == nil {
			err = new(jsonfill.Filler).Fill(raw, &q, "") // RFC 7644 has what is not known ignored
		}
		return q, err
	}
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return q, err
	}
	q = scimQuery{
		Attributes: query["attributes"], ExcludedAttributes: query["excludedAttributes"],
		Filter: query.Get("filter"), SortBy: query.Get("sortBy"),
		SortOrder: query.Get("sortOrder"),
	}
	if q.StartIndex, err = scimNumber(query, "startIndex"); err == nil {
		q.Count, err = scimNumber(query, "count")
	}
	return q, err
}

func scimNumber(query url.Values, name string) (*int, error) {
	if !query.Has(name) {
		return nil, nil
	}
	n, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return nil, &scim.Error{Type: scim.InvalidValue, Err: errs.New(errs.Invalid, "%s must be a number", name)}
	}
	return &n, nil
}

// read returns the query of a list and its selection.
func (q scimQuery) read() (scim.Query, scim.Selection, error) {
	of, err := scim.Select(q.Attributes, q.ExcludedAttributes)
	if err != nil {
		return scim.Query{}, of, err
	}
	order := strings.ToLower(q.SortOrder)
	if order != "" && order != "ascending" && order != "descending" {
		return scim.Query{}, of, &scim.Error{
			Type: scim.InvalidValue,
			Err:  errs.New(errs.Invalid, "sortOrder must be ascending or descending"),
		}
	}
	all := scim.Query{
		Filter:     q.Filter,
		SortBy:     q.SortBy,
		Descending: order == "descending",
		Start:      1,
		Count:      scim.DefaultCount,
	}
	if q.StartIndex != nil {
		all.Start = *q.StartIndex
	}
	if q.Count != nil {
		all.Count = *q.Count
	}
	return all, of, nil
}

// scimSelection returns the selection of a request for one resource.
func scimSelectionOf(r *rest.Request) (scim.Selection, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return scim.Selection{}, err
	}
	return scim.Select(query["attributes"], query["excludedAttributes"])
}
