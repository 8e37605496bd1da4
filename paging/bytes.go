package paging

import "context"

// MaxBytes is the most bytes of the rows of one page. A page ends with the row that exceeds it.
const MaxBytes = 4 << 20

// Limits bound the memory for rows that are read with a context. The zero value has only the limit
// MaxBytes.
type Limits struct {
	// MaxBytes is the size at which a page ends; 0: the constant MaxBytes.
	MaxBytes int
	// Hold is called with the number of additional bytes that are held, after the first freeBytes
	// of a page. If it returns an error, the reading ends with that error. nil: bytes are not
	// counted.
	Hold func(bytes int) error
}

type limitsKey struct{}

// WithLimits returns a context that bounds what is read with it.
func WithLimits(ctx context.Context, l Limits) context.Context {
	return context.WithValue(ctx, limitsKey{}, l)
}

// Meter counts the bytes of rows as they are read. Every Store that reads a page uses one.
type Meter struct {
	limits Limits
	whole  bool
	bytes  int
	held   int
}

// NewMeter returns a Meter of one page with the limits of ctx.
func NewMeter(ctx context.Context) *Meter {
	l, _ := ctx.Value(limitsKey{}).(Limits)
	if l.MaxBytes == 0 {
		l.MaxBytes = MaxBytes
	}
	return &Meter{limits: l}
}

// NewWholeMeter returns a Meter whose Add never reports true, for rows that are not read in pages.
func NewWholeMeter(ctx context.Context) *Meter {
	m := NewMeter(ctx)
	m.whole = true
	return m
}

type batchKey struct{}

// WithBatch returns a context for reading rows by their keys, and the Meter of their bytes. A Store
// may end with the row that fills the Meter, at more than max bytes; the caller then reads the
// others again.
func WithBatch(ctx context.Context, max int) (context.Context, *Meter) {
	m := &Meter{limits: Limits{MaxBytes: max}}
	return context.WithValue(ctx, batchKey{}, m), m
}

// BatchMeter returns the Meter of WithBatch, or one whose Add never reports true.
func BatchMeter(ctx context.Context) *Meter {
	if m, ok := ctx.Value(batchKey{}).(*Meter); ok {
		return m
	}
	return &Meter{whole: true}
}

const (
	freeBytes = 64 << 10  // the first bytes of a page are not counted, so that small pages are cheap
	holdStep  = 256 << 10 // bytes are counted in steps
)

// Add counts bytes that were read, and reports whether the page is full with them. It fails when no
// more may be held.
func (m *Meter) Add(bytes int) (full bool, err error) {
	m.bytes += bytes
	if m.limits.Hold != nil && m.bytes > freeBytes && m.bytes > m.held {
		step := max(holdStep, m.bytes-m.held)
		m.held += step
		err = m.limits.Hold(step)
	}
	return m.Full() && !m.whole, err
}

// Full reports whether the counted bytes fill a page.
func (m *Meter) Full() bool { return m.bytes > m.limits.MaxBytes }
