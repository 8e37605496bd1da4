package bunx

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/text/trigrams"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Index is an index of trigrams (migrations 0043 and 0053), with which a search reads few rows of a
// long list. internal/jobs/indexer maintains it. It has all rows whose text in List.Search matches,
// and possibly others.
type Index struct {
	List, Part string // as in tc_totals
	// Where is a condition on the columns of an index of the table before List.Key, with arguments
	// of the Part; "": tenant_id = $1.
	Where string
}

// Bounds of what a search reads of an index. If they are exceeded, all rows of the list are
// compared, as without an index.
const (
	maxNoted = 5000 // rows that are not indexed yet
	// Rows to compare are looked up by their keys if they are few, or a small part of the index.
	fewFound, maxFound, partFound = 5000, 100_000, 8
)

// DocsInBlock is the number of keys in a row of tc_search_docs.
const DocsInBlock = 16

// Block returns the key of the row of tc_search_docs that contains a text of a segment.
func Block(segment, doc int) string {
	return strconv.Itoa(segment) + "/" + strconv.Itoa(doc/DocsInBlock)
}

const ofList = `tenant_id = $1 AND list = $2 AND part = $3`

// indexState returns the statement that reads whether an index is usable, the rows that are not
// indexed yet, its segments, and which of some grams they have. It is one statement, so that a row
// is either noted or in a segment. The arguments are the tenant, list and part, and the grams.
func indexState(c Conn) string {
	// SQLite joins in this order
	grams := `json_each($4) w CROSS JOIN tc_search_grams g WHERE ` + ofList + ` AND g.gram = w.value ->> 0`
	if c.Postgres() {
		grams = `` + c.Among(4, 1) + ` AS w (gram)
			CROSS JOIN LATERAL (SELECT gram, segment, n FROM tc_search_grams WHERE ` + ofList +
			` AND gram = w.gram OFFSET 0) g`
	}
	return `SELECT 'list', '', 0, 0 FROM tc_search_lists WHERE ` + ofList + ` AND usable
		UNION ALL SELECT 'new', id, 0, 0 FROM (SELECT DISTINCT id FROM tc_search_noted WHERE ` + ofList + ` LIMIT ` +
		strconv.Itoa(maxNoted+1) + `) AS noted
		UNION ALL SELECT 'segment', '', segment, docs FROM tc_search_segments WHERE ` + ofList + ` AND state = 'live'
		UNION ALL SELECT 'gram', g.gram, g.segment, g.n FROM ` + grams
}

// gramLists returns the statement that reads the lists of grams in segments. The arguments are the
// tenant, list and part, and the grams with their segments.
func gramLists(c Conn) string {
	if c.Postgres() {
		return `SELECT w.gram, w.segment, g.docs FROM (SELECT gram, CAST(segment AS integer) FROM ` + c.Among(4, 2) +
			` AS w (gram, segment) OFFSET 0) AS w (gram, segment)
			CROSS JOIN LATERAL (SELECT docs FROM tc_search_grams WHERE ` + ofList +
			` AND gram = w.gram AND segment = w.segment OFFSET 0) g`
	}
	return `SELECT g.gram, g.segment, g.docs FROM json_each($4) w CROSS JOIN tc_search_grams g
		WHERE ` + ofList + ` AND g.gram = w.value ->> 0 AND g.segment = CAST(w.value ->> 1 AS integer)`
}

// segment is what a search knows of a live segment.
type segment struct {
	texts int
	n     map[string]int // number of texts by gram
}

// candidates returns the keys of all rows that have all words, and possibly others. ok is false if
// the index cannot be used.
func (x Index) candidates(
	ctx context.Context, c Conn, tenant string, words []string,
) (keys []string, ok bool, err error) {
	query := trigrams.QueryOf(words...)
	if len(query) == 0 {
		return nil, false, nil
	}
	for range 3 { // a segment can be replaced while it is read
		segments, noted, ok, err := x.state(ctx, c, tenant, query)
		if err != nil || !ok {
			return nil, false, err
		}
		lists, whole, texts := map[int][]string{}, 0, 0
		for number, s := range segments {
			texts += s.texts
			some, possible := query.Lists(s.n, s.texts)
			if !possible {
				continue
			}
			if lists[number] = some; len(some) == 0 {
				whole += s.texts
			}
		}
		if tooMany(whole, texts) {
			return nil, false, nil
		}
		docs, all, err := x.docs(ctx, c, tenant, lists, segments)
		if err != nil {
			return nil, false, err
		}
		if !all {
			continue
		}
		found := 0
		for _, some := range docs {
			found += len(some)
		}
		if tooMany(found, texts) {
			return nil, false, nil
		}
		keys, all, err := x.keys(ctx, c, tenant, docs)
		if err != nil {
			return nil, false, err
		}
		if all {
			keys = append(keys, noted...)
			slices.Sort(keys)
			return slices.Compact(keys), true, nil
		}
	}
	return nil, false, nil
}

// tooMany reports whether n rows, in an index with some texts, are so many that all rows of the
// list are compared instead.
func tooMany(n, texts int) bool { return n > fewFound && n > min(maxFound, texts/partFound) }

// state returns the live segments of an index by their numbers, and the keys of rows that are not
// indexed yet. It reports false if the index is not usable.
func (x Index) state(
	ctx context.Context, c Conn, tenant string, query trigrams.Query,
) (segments map[int]*segment, noted []string, ok bool, err error) {
	segments = map[int]*segment{}
	rows, err := c.Rows(ctx, indexState(c), tenant, x.List, x.Part, Keys(query.Grams()))
	_, err = Scan(rows, err, func(rows *sql.Rows) (struct{}, error) {
		var what, text string
		var number, n int
		err := rows.Scan(&what, &text, &number, &n)
		switch what {
		case "list":
			ok = true
		case "new":
			noted = append(noted, text)
		default:
			s := segments[number]
			if s == nil {
				s = &segment{n: map[string]int{}}
				segments[number] = s
			}
			if what == "segment" {
				s.texts = n
			} else {
				s.n[text] = n
			}
		}
		return struct{}{}, err
	})
	maps.DeleteFunc(segments, func(_ int, s *segment) bool { return s.texts == 0 }) // it is not live
	return segments, noted, ok && len(noted) <= maxNoted, Err(err, "Page")
}

// docs returns the texts of segments that are in the lists of all given grams, all texts of a
// segment without grams. all is false if a segment was replaced.
func (x Index) docs(
	ctx context.Context, c Conn, tenant string, lists map[int][]string, segments map[int]*segment,
) (docs map[int][]int, all bool, err error) {
	docs = map[int][]int{}
	var grams, of []string
	for number, some := range lists {
		if len(some) == 0 {
			docs[number] = make([]int, segments[number].texts)
			for i := range docs[number] {
				docs[number][i] = i
			}
		}
		for _, gram := range some {
			grams, of = append(grams, gram), append(of, strconv.Itoa(number))
		}
	}
	if len(grams) == 0 {
		return docs, true, nil
	}
	rows, err := c.Rows(ctx, gramLists(c), tenant, x.List, x.Part, Keys(grams, of))
	read, err := Scan(rows, err, func(rows *sql.Rows) (struct{}, error) {
		var gram, list string
		var number int
		if err := rows.Scan(&gram, &number, &list); err != nil {
			return struct{}{}, err
		}
		some, err := trigrams.Read(list)
		if before, ok := docs[number]; ok {
			some = trigrams.Common(before, some)
		}
		docs[number] = some
		return struct{}{}, err
	})
	return docs, len(read) == len(grams), Err(err, "Page")
}

// keys returns the keys of texts of segments. It reports false if a segment was replaced.
func (x Index) keys(
	ctx context.Context, c Conn, tenant string, docs map[int][]int,
) (keys []string, all bool, err error) {
	texts := map[string][]int{} // by block
	for segment, some := range docs {
		for _, doc := range some {
			block := Block(segment, doc)
			texts[block] = append(texts[block], doc%DocsInBlock)
		}
	}
	if len(texts) == 0 {
		return nil, true, nil
	}
	blocks := make([]string, 0, len(texts))
	for block := range texts {
		blocks = append(blocks, block)
	}
	rows, err := c.Find(ctx, Lookup{
		Columns: "block, ids",
		Table:   "tc_search_docs",
		Where:   "tenant_id = $1 AND list = $2 AND part = $3",
		Key:     "block",
	}, blocks, tenant, x.List, x.Part)
	read, err := Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var block string
		var ids []byte
		if err := rows.Scan(&block, &ids); err != nil {
			return none, err
		}
		before, want := len(keys), texts[block]
		ok := rawjson.Elements(ids, func(i int, id json.RawMessage) {
			if !slices.Contains(want, i) {
				return
			}
			if key, ok := rawjson.Text(id); ok {
				keys = append(keys, key)
			}
		})
		if !ok || len(keys)-before != len(want) {
			return none, fmt.Errorf("block %s of the index of %s does not have the texts %d", block, x.List, want)
		}
		return none, nil
	})
	return keys, len(read) == len(blocks), Err(err, "Page")
}

// search returns what a page with q reads: the FROM of the statement, and the matching rows with
// their number. Few rows are looked up by their keys. If the index cannot be used, all rows of the
// part are compared.
func (l List[R]) search(ctx context.Context, c Conn, part Part, q paging.Query) (from string, of Part, err error) {
	table, words := l.Table.Name, fold.Words(q.Q)
	if x := part.Index; x != nil {
		tenant, _ := part.Args[0].(string)
		keys, ok, err := x.candidates(ctx, c, tenant, words)
		if err != nil {
			return "", part, err
		}
		if ok {
			part.Args = append(slices.Clip(part.Args), Keys(keys))
			table = x.rows(c, l.Table.Name, l.Key, len(part.Args))
		}
	}
	for _, word := range words {
		// SQLite would prepare a statement with LIKE and an argument again for each value
		part = part.And(l.Search+` LIKE '' || @ ESCAPE '\'`, fold.Pattern(word))
	}
	from = " FROM " + table + " AS " + l.Table.alias + l.Join + " WHERE " + part.Where
	part.Total, part.What = "(SELECT count(*)"+from+")", "" // one statement for rows and total
	return from, part, nil
}

// rows returns a table of the rows with the Keys in argument $n. It forces the database to look up
// each key. A planner that expects more rows than there are, or has no statistics, would read the
// list in its order and compare each row.
func (x Index) rows(c Conn, table, key string, n int) string {
	where := x.Where
	if where == "" {
		where = "tenant_id = $1"
	}
	if c.Postgres() {
		return fmt.Sprintf(`(SELECT found.* FROM %s AS sought(key)
			CROSS JOIN LATERAL (SELECT * FROM %s WHERE %s AND %s = sought.key OFFSET 0) AS found)`, c.Among(n, 1),
			table, where, key)
	}
	return fmt.Sprintf(`(SELECT found.* FROM json_each($%d) AS sought CROSS JOIN %s AS found WHERE %s `+
		`AND %s = sought.value ->> 0)`,
		n, table, strings.ReplaceAll(where, "tenant_id", "found.tenant_id"), "found."+key)
}
