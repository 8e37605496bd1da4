package cache_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/limits/cache"
)

func has(b *cache.Sized[[]byte], tenant string, ids ...int) (n int) {
	for _, id := range ids {
		if content, ok := b.Get(tenant, fmt.Sprint(id)); ok && len(content) == 1000 {
			n++
		}
	}
	return n
}

func TestSizedIsBounded(t *testing.T) {
	is, b := is.New(t), cache.NewSized[[]byte](10*1256)
	for i := range 10 {
		b.Put("acme", fmt.Sprint(i), make([]byte, 1000), 1000)
	}
	is.Equal(has(b, "acme", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 10)
	is.Equal(has(b, "acme", 0), 1) // the most recently used
	b.Put("acme", "10", make([]byte, 1000), 1000)
	is.Equal(has(b, "acme", 1), 0)
	is.Equal(has(b, "acme", 0, 2, 3, 4, 5, 6, 7, 8, 9, 10), 10)
	b.Put("acme", "huge", make([]byte, 100_000), 100_000) // larger than the limit
	is.Equal(has(b, "acme", 0, 2, 3, 4, 5, 6, 7, 8, 9, 10), 0)
	_, ok := b.Get("acme", "huge")
	is.True(!ok)
	b.Put("acme", "1", make([]byte, 1000), 1000)
	is.Equal(has(b, "acme", 1), 1)
}

// TestSizedIsFair: the tenant with the most bytes loses values first.
func TestSizedIsFair(t *testing.T) {
	is, b := is.New(t), cache.NewSized[[]byte](10*1256)
	b.Put("small", "1", make([]byte, 1000), 1000)
	for i := range 1000 {
		b.Put("busy", fmt.Sprint(i), make([]byte, 1000), 1000)
	}
	is.Equal(has(b, "small", 1), 1)
	is.Equal(has(b, "busy", 991, 992, 993, 994, 995, 996, 997, 998, 999), 9)
	for i := range 4 {
		b.Put("other", fmt.Sprint(i), make([]byte, 1000), 1000)
	}
	is.Equal(has(b, "other", 0, 1, 2, 3), 4)
	is.Equal(has(b, "small", 1), 1)
	is.Equal(has(b, "busy", 995, 996, 997, 998, 999), 5)
	_, ok := b.Get("other", "999") // of another tenant
	is.True(!ok)
}

func TestSizedAtOnce(t *testing.T) {
	b := cache.NewSized[[]byte](20 * 1256)
	var all sync.WaitGroup
	for who := range 4 {
		all.Go(func() {
			for i := range 1000 {
				tenant, id := fmt.Sprint((who+i)%3), fmt.Sprint(i%50)
				if content, ok := b.Get(tenant, id); ok && len(content) != 1000 {
					t.Error("another content")
				}
				b.Put(tenant, id, make([]byte, 1000), 1000)
			}
		})
	}
	all.Wait()
}
