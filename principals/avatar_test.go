package principals_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/principals"
)

// luminance is WCAG's relative luminance of "#rrggbb".
func luminance(hex string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, _ := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func TestAvatar(t *testing.T) {
	is := is.New(t)
	var seen [16]int
	for i := range 16000 {
		id := fmt.Sprint("user", i)
		index, background, text := principals.Avatar("acme", id)
		again, _, _ := principals.Avatar("acme", id)
		is.Equal(index, again) // pure
		seen[index]++
		a, b := luminance(background), luminance(text)
		is.True((max(a, b)+0.05)/(min(a, b)+0.05) >= 4.5) // can be read
	}
	for _, n := range seen {
		is.True(n > 800 && n < 1200) // spread
	}
	differ := 0
	for i := range 100 {
		a, _, _ := principals.Avatar("acme", fmt.Sprint(i))
		b, _, _ := principals.Avatar("evil", fmt.Sprint(i))
		if a != b {
			differ++
		}
	}
	is.True(differ > 50) // it depends on the tenant
}

func TestInitials(t *testing.T) {
	for name, want := range map[string]string{
		"Jo Doe": "JD", "jo": "J", "jo doe": "JD",
		"Jo van der Doe": "JD", "jo.doe@example.com": "JD", "jo_doe": "JD", "Jean-Luc Picard": "JP",
		"": "", "  ": "", "?!": "", "日本 太郎": "日太", "émile zola": "ÉZ",
		"Jo (Sales)": "JS", "@jo": "", "a@b c": "AC", "4 you": "4Y", "J0": "J",
	} {
		t.Run(name, func(t *testing.T) { is.New(t).Equal(principals.Initials(name), want) })
	}
}
