package principals

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
)

func TestHash(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	h := newHasher(DefaultCost(), 2)
	stored, err := h.hash(ctx, "correct horse")
	is.NoErr(err)
	is.True(strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$"))
	again, err := h.hash(ctx, "correct horse")
	is.NoErr(err)
	is.True(stored != again) // salted
	for password, want := range map[string]bool{"correct horse": true, "Correct horse": false, "": false} {
		is.Equal(h.check(stored, password), want)
	}
	other := newHasher(Cost{Memory: 8, Time: 1, Threads: 1}, 1) // parameters come from the stored text
	is.True(other.check(stored, "correct horse"))
	// from the tests of the reference implementation (P-H-C/phc-winner-argon2:src/test.c)
	is.True(other.check(
		"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password",
	))
}

// TestHostileHashes: none matches, none asks for more than the bounds, each takes one hashing.
func TestHostileHashes(t *testing.T) {
	is := is.New(t)
	const salt, key = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, bad := range []string{
		"", "x",
		"$$$$$", "$argon2i$v=19$m=8,t=1,p=1$" + salt + "$" + key, "$argon2id$v=16$m=8,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=4294967295,t=1,p=1$" + salt + "$" + key, "$argon2id$v=19$m=65537,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=11,p=1$" + salt + "$" + key, "$argon2id$v=19$m=8,t=0,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=64,t=1,p=5$" + salt + "$" + key, "$argon2id$v=19$m=8,t=1,p=0$" + salt + "$" + key,
		"$argon2id$v=19$m=7,t=1,p=1$" + salt + "$" + key, "$argon2id$v=19$m=08,t=1,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=8,t=1,p=1,x=1$" + salt + "$" + key, "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$" + key,
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$a2V5", "$argon2id$v=19$m=8,t=1,p=1$" + salt + "$",
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + key + "\n",
		"$argon2id$v=19$m=8,t=1,p=1$" + salt + "$" + strings.Repeat("A", 300),
	} {
		_, ok := parsePHC(bad)
		is.True(!ok)
		h := newHasher(Cost{Memory: 8, Time: 1, Threads: 1}, 1)
		is.True(!h.check(bad, "password"))
		is.Equal(h.runs.Load(), int64(1)) // one hashing
	}
}

func FuzzPHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := parsePHC(text); ok && (p.String() != text || !p.cost.bounded()) {
			t.Fatalf("%q read as %q", text, p)
		}
	})
}

func TestGateRespectsContext(t *testing.T) {
	is := is.New(t)
	h := newHasher(Cost{Memory: 8, Time: 1, Threads: 1}, 1)
	_, err := h.enter(t.Context(), "acme") // somebody is hashing
	is.NoErr(err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, err = h.hash(ctx, "x") })
	cancel()
	wg.Wait()
	is.True(errors.Is(err, context.Canceled))
	is.Equal(h.runs.Load(), int64(0))
}
