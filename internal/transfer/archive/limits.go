package archive

import "github.com/tenantcontent/tenantcontent/errs"

// Limits limit archives that are read and written. A program can read what another one with the
// same limits has written. A limit of 0 has its default. In addition, the names of all members may
// have 128 bytes each on average, or 1 MiB together.
type Limits struct {
	Members int   // number of members: rows, files, bundle.json and checksums.json; default 200,000
	Bytes   int64 // unpacked; default 4 GiB
	Row     int64 // bytes of one row; default 4 MiB
	Ratio   int64 // unpacked to packed bytes, after the first MiB; default 200. A Writer packs less to meet it
}

// Check returns errs.Invalid naming an invalid limit.
func (l Limits) Check() error {
	for name, v := range map[string]int64{
		"Members": int64(l.Members),
		"Bytes":   l.Bytes,
		"Row":     l.Row,
		"Ratio":   l.Ratio,
	} {
		if v < 0 {
			return errs.New(errs.Invalid, "the archive limit %s must not be negative", name)
		}
	}
	return nil
}

// WithDefaults returns the limits with defaults in place of 0.
func (l Limits) WithDefaults() Limits {
	set := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	if l.Members == 0 {
		l.Members = 200_000
	}
	set(&l.Bytes, 4<<30)
	set(&l.Row, 4<<20)
	set(&l.Ratio, 200)
	return l
}

// names is the most bytes of all names together, which a Reader and a Writer keep in memory.
func (l Limits) names() int { return max(128*l.Members, 1<<20) }

// MaxNesting is the most levels of the data of an entry.
const MaxNesting = 64

const (
	maxHeader  = 16 << 20       // bytes of bundle.json
	maxWidth   = 100_000        // entries and kinds of bundle.json
	maxDepth   = MaxNesting + 3 // levels of bundle.json: itself, the array of entries, an entry, and its data
	maxColumns = 10_000         // members of a row, and of bundle.json
	maxName    = 4096           // bytes of a member's name
	maxType    = 255            // bytes of a file's content type
	maxTar     = 16 << 10       // bytes of tar's headers for a member, more than for any valid name and content type
	maxToken   = 32 << 10       // bytes of a text of checksums.json, more than for any escaped name
	free       = 1 << 20        // bytes before the ratio counts
)
