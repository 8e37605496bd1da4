package principals

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// Cost is the cost of one argon2id hashing.
type Cost struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultCost returns the cost that OWASP's Password Storage Cheat Sheet recommends: 19 MiB, two
// passes, one thread.
func DefaultCost() Cost { return Cost{Memory: 19 * 1024, Time: 2, Threads: 1} }

// The largest cost that a stored hash may have, so that a hostile row cannot exhaust the machine.
const (
	maxMemory  = 64 * 1024 // KiB
	maxTime    = 10
	maxThreads = 4
	maxPHC     = 256 // bytes of the text
)

const (
	saltBytes = 16
	keyBytes  = 32
	minRunes  = 8
	maxRunes  = 256
)

// phc is a hash in PHC string format: $argon2id$v=19$m=19456,t=2,p=1$salt$key.
type phc struct {
	cost      Cost
	salt, key []byte
}

func (p phc) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(
		"$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.cost.Memory, p.cost.Time, p.cost.Threads,
		b64(p.salt), b64(p.key),
	)
}

// parsePHC reads a stored hash; ok is false for any other text and for one over the bounds.
func parsePHC(text string) (p phc, ok bool) {
	part := strings.Split(text, "$")
	if len(text) > maxPHC || len(part) != 6 {
		return phc{}, false
	}
	if _, err := fmt.Sscanf(part[3], "m=%d,t=%d,p=%d", &p.cost.Memory, &p.cost.Time, &p.cost.Threads); err != nil {
		return phc{}, false
	}
	var errSalt, errKey error
	p.salt, errSalt = base64.RawStdEncoding.Strict().DecodeString(part[4])
	p.key, errKey = base64.RawStdEncoding.Strict().DecodeString(part[5])
	ok = errSalt == nil && errKey == nil && len(p.salt) >= 8 && len(p.key) >= 16 && p.cost.bounded() &&
		p.String() == text // nothing before, between or after the numbers
	return p, ok
}

func (c Cost) bounded() bool {
	return c.Time >= 1 && c.Time <= maxTime && c.Threads >= 1 && c.Threads <= maxThreads &&
		c.Memory >= 8*uint32(c.Threads) && c.Memory <= maxMemory
}

// maxQueue is how long a password may wait to be hashed, long enough for a thousand logins at once.
const maxQueue = 30 * time.Second

// The most passwords that wait to be hashed, in all and of one tenant. More are refused with
// errs.Busy.
const (
	maxQueued   = 4096
	maxQueuedOf = 2048
)

// hasher makes and checks hashes, a few at a time, as each takes much memory.
type hasher struct {
	cost Cost
	gate *limiter.Limiter
	runs atomic.Int64 // hashings so far
	took atomic.Int64 // nanoseconds of the last one
}

func newHasher(cost Cost, atOnce int) *hasher {
	return &hasher{cost: cost, gate: limiter.New(limiter.Options{
		Capacity: int64(atOnce), FairSubkeys: true, Timeout: maxQueue, Queue: maxQueued, QueuePerKey: maxQueuedOf,
	})}
}

// hash returns a PHC string with a new salt. It returns the context's error if ctx ends before it
// begins.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	tenant := ""
	if a, err := actor.From(ctx); err == nil {
		tenant = a.Tenant
	}
	leave, err := h.enter(ctx, tenant)
	if err != nil {
		return "", err
	}
	defer leave()
	p := phc{cost: h.cost, salt: make([]byte, saltBytes)}
	_, _ = rand.Read(p.salt) // never fails
	p.key = h.key(p.cost, p.salt, password, keyBytes)
	return p.String(), nil
}

// check reports whether a password matches a PHC string. The caller must have entered. It hashes
// exactly once, even if the string is not valid: then it hashes at the usual cost and returns
// false.
func (h *hasher) check(stored, password string) bool {
	p, ok := parsePHC(stored)
	if !ok {
		p = phc{cost: h.cost, salt: make([]byte, saltBytes), key: make([]byte, keyBytes)}
	}
	return subtle.ConstantTimeCompare(h.key(p.cost, p.salt, password, len(p.key)), p.key) == 1 && ok
}

func (h *hasher) key(c Cost, salt []byte, password string, size int) []byte {
	h.runs.Add(1)
	begin := time.Now()
	defer func() { h.took.Store(int64(time.Since(begin))) }()
	return argon2.IDKey([]byte(password), salt, c.Time, c.Memory, c.Threads, uint32(size))
}

// lastTook returns how long the last hashing took.
func (h *hasher) lastTook() time.Duration { return time.Duration(h.took.Load()) }

// enter waits for a place. Few passwords are hashed at once, fairly by tenant and, within a tenant,
// by client network. The caller must call leave. It returns errs.Busy if too many wait.
func (h *hasher) enter(ctx context.Context, tenant string) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	leave, err = h.gate.Acquire(ctx, 1, tenant, actor.OriginOf(ctx).Network())
	if errors.Is(err, limiter.ErrBusy) {
		err = errs.Wrap(errs.Busy, err, "Too many passwords are being checked at the moment. Try again later.")
	}
	return leave, err
}

// validPassword returns errs.Invalid for a password that is too short, too long or not UTF-8.
func validPassword(password string) error {
	if n := utf8.RuneCountInString(password); n < minRunes || n > maxRunes || !utf8.ValidString(password) {
		return errs.New(errs.Invalid, "password must have %d to %d characters", minRunes, maxRunes)
	}
	return nil
}
