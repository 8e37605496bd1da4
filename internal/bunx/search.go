package bunx

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/internal/trigrams"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Index is an index of trigrams (migration 0043), by which a search reads few rows of a long list. internal/indexer keeps it. It has all rows whose
// text in List.Search matches, and perhaps others.
type Index struct {
	List, Part string // as in tc_totals
	// Where is a condition on the columns of an index of the table before List.Key, with arguments of the Part; "": tenant_id = $1.
	Where string
}

// Bounds of what a search reads of an index. Beyond them it compares all rows of the list, as it does without an index.
const (
	maxNoted = 5000    // rows that are not in the index yet
	maxFound = 5000    // rows that are to be compared
	maxList  = 500_000 // rows with a trigram
	maxGrams = 64      // trigrams of q that are looked at
)

// DocsInBlock is how many keys a row of tc_search_docs has.
const DocsInBlock = 64

// Block returns the key of the row of tc_search_docs that has a text of a segment.
func Block(segment, doc int) string {
	return strconv.Itoa(segment) + "/" + strconv.Itoa(doc/DocsInBlock)
}

// lookup returns the statement that reads an index: the list, the rows that are noted, the trigrams that are rarest in it, as many as it takes to
// tell few rows, and the lists of these. It is one statement, so that a row is either noted or in a segment. The arguments are
// the tenant, list and part, and the trigrams.
func lookup(c Conn) string {
	const of = `tenant_id = $1 AND list = $2 AND part = $3`
	docs := `chosen c CROSS JOIN tc_search_grams g CROSS JOIN tc_search_segments s WHERE g.tenant_id = $1 AND g.list = $2 AND g.part = $3 AND g.gram = c.gram
		AND s.tenant_id = $1 AND s.list = $2 AND s.part = $3 AND s.segment = g.segment AND s.state = 'live'` // SQLite joins in this order
	if c.Postgres() {
		docs = `chosen c CROSS JOIN LATERAL (SELECT gram, segment, docs FROM tc_search_grams WHERE ` + of + ` AND gram = c.gram OFFSET 0) g
			CROSS JOIN LATERAL (SELECT 1 FROM tc_search_segments WHERE ` + of + ` AND segment = g.segment AND state = 'live' OFFSET 0) s`
	}
	return `WITH wanted (gram) AS ` + c.Among(4, 1) + `,
		sizes (gram, n) AS (SELECT w.gram, (SELECT coalesce(sum(g.n), 0) FROM tc_search_grams g
			WHERE g.tenant_id = $1 AND g.list = $2 AND g.part = $3 AND g.gram = w.gram) FROM wanted w),
		chosen (gram) AS (SELECT gram FROM sizes WHERE n <= ` + strconv.Itoa(maxList) + ` AND n <= 1000 + 20 * (SELECT min(n) FROM sizes)
			ORDER BY n LIMIT CASE WHEN (SELECT min(n) FROM sizes) <= 16 THEN 1 ELSE 12 END)
		SELECT 'list' AS what, '' AS text, 0 AS segment, '' AS docs FROM tc_search_lists WHERE tenant_id = $1 AND list = $2 AND part = $3 AND usable
		UNION ALL SELECT 'new', id, 0, '' FROM (SELECT DISTINCT id FROM tc_search_noted WHERE tenant_id = $1 AND list = $2 AND part = $3 LIMIT ` + strconv.Itoa(maxNoted+1) + `) AS noted
		UNION ALL SELECT 'gram', gram, 0, '' FROM chosen
		UNION ALL SELECT 'docs', g.gram, g.segment, g.docs FROM ` + docs
}

// found is what a lookup reads.
type found struct {
	usable bool
	noted  []string
	grams  []string
	docs   map[int]map[string]string // by segment and trigram
}

// candidates returns the keys of all rows that q can match, and perhaps more; false: there is no index that tells them.
func (x Index) candidates(ctx context.Context, c Conn, tenant, q string) (keys []string, ok bool, err error) {
	grams := trigrams.Of(fold.Text(q))
	if len(grams) == 0 {
		return nil, false, nil
	}
	for range 3 { // a segment goes while it is read when others replace it
		f, err := x.look(ctx, c, tenant, grams[:min(len(grams), maxGrams)])
		if err != nil || !f.usable || len(f.noted) > maxNoted || len(f.grams) == 0 {
			return nil, false, err
		}
		docs, n, err := f.common()
		if err != nil || n > maxFound {
			return nil, false, err
		}
		keys, all, err := x.keys(ctx, c, tenant, docs)
		if err != nil {
			return nil, false, err
		}
		if all {
			keys = append(keys, f.noted...)
			slices.Sort(keys)
			return slices.Compact(keys), true, nil
		}
	}
	return nil, false, nil
}

func (x Index) look(ctx context.Context, c Conn, tenant string, grams []string) (f found, err error) {
	f.docs = map[int]map[string]string{}
	rows, err := c.Rows(ctx, lookup(c), tenant, x.List, x.Part, Keys(grams))
	_, err = Scan(rows, err, func(rows *sql.Rows) (struct{}, error) {
		var what, text, docs string
		var segment int
		err := rows.Scan(&what, &text, &segment, &docs)
		switch what {
		case "list":
			f.usable = true
		case "new":
			f.noted = append(f.noted, text)
		case "gram":
			f.grams = append(f.grams, text)
		default:
			if f.docs[segment] == nil {
				f.docs[segment] = map[string]string{}
			}
			f.docs[segment][text] = docs
		}
		return struct{}{}, err
	})
	return f, Err(err, "Page")
}

// common returns the texts of each segment that have all the trigrams, and their number.
func (f found) common() (docs map[int][]int, n int, err error) {
	docs = map[int][]int{}
	for segment, lists := range f.docs {
		if len(lists) < len(f.grams) {
			continue
		}
		grams := slices.Clone(f.grams)
		slices.SortFunc(grams, func(a, b string) int { return len(lists[a]) - len(lists[b]) })
		var all []int
		for i, gram := range grams {
			some, err := trigrams.Read(lists[gram])
			if err != nil {
				return nil, 0, err
			}
			if all = trigrams.Common(all, some); i == 0 {
				all = some
			}
		}
		docs[segment] = all
		n += len(all)
	}
	return docs, n, nil
}

// keys returns the keys of texts of segments; false: a segment is gone.
func (x Index) keys(ctx context.Context, c Conn, tenant string, docs map[int][]int) (keys []string, all bool, err error) {
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
	rows, err := c.Find(ctx, Lookup{Columns: "block, ids", Table: "tc_search_docs", Where: "tenant_id = $1 AND list = $2 AND part = $3", Key: "block"}, blocks, tenant, x.List, x.Part)
	read, err := Scan(rows, err, func(rows *sql.Rows) (string, error) {
		var block, ids string
		var all []string
		if err := rows.Scan(&block, &ids); err != nil {
			return "", err
		}
		if err := json.Unmarshal([]byte(ids), &all); err != nil {
			return "", fmt.Errorf("block %s of the index of %s: %w", block, x.List, err)
		}
		for _, i := range texts[block] {
			if i >= len(all) {
				return "", fmt.Errorf("block %s of the index of %s has no text %d", block, x.List, i)
			}
			keys = append(keys, all[i])
		}
		return block, nil
	})
	return keys, len(read) == len(blocks), Err(err, "Page")
}

// search returns what a page with q reads: the rows of the part that match, where they are read from, and their number. Few rows are
// looked up by their keys; without an index that tells them, all rows of the part are compared.
func (l List[R]) search(ctx context.Context, c Conn, part Part, q paging.Query) (from string, of Part, err error) {
	table := l.Table.Name
	if x := part.Index; x != nil {
		tenant, _ := part.Args[0].(string)
		keys, ok, err := x.candidates(ctx, c, tenant, q.Q)
		if err != nil {
			return "", part, err
		}
		if ok {
			part.Args = append(slices.Clip(part.Args), Keys(keys))
			table = x.rows(c, l.Table.Name, l.Key, len(part.Args))
		}
	}
	part = part.And(l.Search+` LIKE @ ESCAPE '\'`, fold.Pattern(q.Q))
	from = " FROM " + table + " AS " + l.Table.alias + l.Join + " WHERE " + part.Where
	part.Total, part.What = "(SELECT count(*)"+from+")", "" // one statement for rows and total
	return from, part, nil
}

// rows returns a table of the rows with the Keys that are argument $n. It leaves the engine no choice but to look up each: one that expects more rows than there
// are, or has no statistics, reads the list in its order instead and compares each row.
func (x Index) rows(c Conn, table, key string, n int) string {
	where := x.Where
	if where == "" {
		where = "tenant_id = $1"
	}
	if c.Postgres() {
		return fmt.Sprintf(`(SELECT found.* FROM (SELECT value ->> 0 FROM json_array_elements($%d) OFFSET 0) AS sought(key)
			CROSS JOIN LATERAL (SELECT * FROM %s WHERE %s AND %s = sought.key OFFSET 0) AS found)`, n, table, where, key)
	}
	return fmt.Sprintf(`(SELECT found.* FROM json_each($%d) AS sought CROSS JOIN %s AS found WHERE %s AND %s = sought.value ->> 0)`,
		n, table, strings.ReplaceAll(where, "tenant_id", "found.tenant_id"), "found."+key)
}
