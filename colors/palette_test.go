package colors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/colors"
)

// The families in Google's order. The last three have no accents.
var (
	families = strings.Fields("red pink purple deep-purple indigo blue light-blue cyan teal green light-green lime " +
		"yellow amber orange deep-orange brown grey blue-grey")
	shades  = strings.Fields("50 100 200 300 400 500 600 700 800 900")
	accents = strings.Fields("a100 a200 a400 a700")
)

// labels is every label of the palette, spelled out apart from the code under test.
func labels() []string {
	var all []string
	for i, family := range families {
		own := shades
		if i < 16 {
			own = append(shades[:len(shades):len(shades)], accents...)
		}
		for _, shade := range own {
			all = append(all, family+":"+shade)
		}
	}
	return all
}

func TestHex(t *testing.T) {
	for color, want := range map[string]string{
		// a hex stays as stored
		"#abc": "#abc", "#ABC": "#ABC", "#aabbcc": "#aabbcc", "#AaBbCc": "#AaBbCc", "#000": "#000", "#09f": "#09f",
		// a family is its shade 500
		"red": "#f44336", "grey": "#9e9e9e", "blue-grey": "#607d8b", "blueGrey": "#607d8b",
		"red:500": "#f44336", "blue:50": "#e3f2fd", "blue-grey:900": "#263238", "blueGrey:900": "#263238",
		"deepPurple:50": "#ede7f6", "lightBlue": "#03a9f4", "lightGreen:a200": "#b2ff59", "deepOrange:A700": "#dd2c00",
		// accents in either case
		"red:a100": "#ff8a80", "red:A100": "#ff8a80", "deep-purple:A700": "#6200ea",
		// neither
		"": "", "#": "", "#12": "", "#1234": "",
		"#12345": "", "#1234567": "", "#12345678": "", "#ggg": "", "#12345g": "",
		"abc": "", "aabbcc": "", "#abc\n": "", "#aabbcc\n": "",
		" #abc": "", "#abc ": "", "#ab/": "", "#ab:": "", "#ab@": "",
		"#ab`": "", "##ab": "", "#éa": "", "#\x00\x00\x00": "", "#-12": "",
		"red:": "", ":500": "", ":": "", "red:55": "", "red:1000": "", "red:A300": "", "red:500:500": "", "red-500": "",
		"red 500": "", "red:0500": "", "red:50 ": "", "red\n": "",
		"RED": "", "Red": "", "Blue-Grey": "", "BlueGrey": "",
		"bluegrey": "", "blue_grey": "", "blue grey": "", "blue-gray": "", "gray": "", "blue-Grey": "",
		"brown:a100": "", "grey:A100": "", "blueGrey:a700": "", "black": "", "white": "", "transparent": "",
	} {
		t.Run(fmt.Sprintf("%q", color), func(t *testing.T) {
			is := is.New(t)
			is.Equal(colors.Hex(color), want)
			is.Equal(colors.Valid(color), want != "")
			is.Equal(colors.ValidHex(color), want != "" && color[0] == '#')
		})
	}
}

func TestNamed(t *testing.T) {
	for hex, want := range map[string]string{
		"#2196f3": "blue:500", "#2196F3": "blue:500", "#607D8B": "blue-grey:500", "#6200ea": "deep-purple:a700",
		"#ffff00": "yellow:a200", "#ff0": "yellow:a200",
		"#FF0": "yellow:a200", "#a0f": "purple:a700", "#EEE": "grey:200",
		"": "", "#000": "", "#fff": "", "#ffffff": "",
		"#2196f4": "", "2196f3": "", "#2196f3\n": "", "#2196f3ff": "", "#ff00": "",
		"blue": "", "blue:500": "", // a label is not a hex: resolve it with Hex first
	} {
		t.Run(fmt.Sprintf("%q", hex), func(t *testing.T) {
			is.New(t).Equal(colors.Named(hex), want)
		})
	}
}

func TestEveryPaletteColor(t *testing.T) {
	is := is.New(t)
	is.Equal(len(families), 19)
	is.Equal(len(labels()), 254)
	seen := map[string]string{}
	for _, label := range labels() {
		hex := colors.Hex(label)
		is.True(colors.ValidHex(hex))
		is.Equal(len(hex), 7)
		is.Equal(hex, strings.ToLower(hex))
		is.Equal(colors.Named(hex), label)
		is.Equal(colors.Named(strings.ToUpper(hex)), label)
		is.Equal(seen[hex], "") // no other label has this hex
		seen[hex] = label
	}
	is.Equal(len(seen), 254)
}

// TestShortHexes looks at all 4,096 of them: each is named like the long hex it stands for.
func TestShortHexes(t *testing.T) {
	is := is.New(t)
	for v := range 1 << 12 {
		r, g, b := v>>8, v>>4&15, v&15
		short, long := fmt.Sprintf("#%x%x%x", r, g, b), fmt.Sprintf("#%x%x%x%x%x%x", r, r, g, g, b, b)
		is.Equal(colors.Named(short), colors.Named(long))
		is.Equal(colors.Hex(short), short)
	}
}

// TestPublishedValues has values known from elsewhere than the table: the 500 of every family and
// some of the rest.
func TestPublishedValues(t *testing.T) {
	is := is.New(t)
	for label, want := range map[string]string{
		"red:500": "#f44336", "pink:500": "#e91e63", "purple:500": "#9c27b0", "deep-purple:500": "#673ab7",
		"indigo:500": "#3f51b5", "blue:500": "#2196f3", "light-blue:500": "#03a9f4", "cyan:500": "#00bcd4",
		"teal:500": "#009688", "green:500": "#4caf50", "light-green:500": "#8bc34a", "lime:500": "#cddc39",
		"yellow:500": "#ffeb3b", "amber:500": "#ffc107", "orange:500": "#ff9800", "deep-orange:500": "#ff5722",
		"brown:500": "#795548", "grey:500": "#9e9e9e", "blue-grey:500": "#607d8b",
		"red:50": "#ffebee", "red:900": "#b71c1c",
		"pink:a200": "#ff4081", "indigo:700": "#303f9f", "blue:700": "#1976d2",
		"teal:a700": "#00bfa5", "green:a400": "#00e676",
		"amber:a700": "#ffab00", "grey:50": "#fafafa", "grey:900": "#212121",
		"blue-grey:50": "#eceff1", "deep-purple:a200": "#7c4dff", "light-blue:900": "#01579b",
	} {
		is.Equal(colors.Hex(label), want)
	}
}

func TestListAllocatesNothing(t *testing.T) {
	is := is.New(t)
	rows := []string{"#2196f3", "#2196F3", "#123456", "#ff0", "blue-grey:a100", "blueGrey:900", "red", "nothing", ""}
	is.Equal(testing.AllocsPerRun(100, func() {
		for _, color := range rows {
			colors.Named(colors.Hex(color))
		}
	}), 0.0)
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"", "#", "#abc", "#AABBCC", "#ff0", "red", "blueGrey:A100", "lightBlue:a100", "#abc\n", "é:500",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, color string) {
		is := is.New(t)
		colors.Named(color)
		hex := colors.Hex(color)
		is.Equal(colors.Valid(color), hex != "")
		is.Equal(colors.ValidHex(hex), hex != "")
		is.Equal(colors.Hex(hex), hex) // a resolved color stays resolved
		if colors.ValidHex(color) {
			is.Equal(hex, color)
		}
		label := colors.Named(hex)
		is.Equal(label, colors.Named(strings.ToLower(hex)))
		if hex != "" && hex != color { // it was a palette name
			is.True(label != "")
		}
		if label != "" {
			is.Equal(colors.Named(colors.Hex(label)), label)
		}
	})
}

func BenchmarkListRow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		colors.Named(colors.Hex("#2196f3"))
	}
}
