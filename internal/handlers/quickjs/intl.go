package quickjs

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a child reads no files
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/collate"
	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

//go:embed locales.bin
var localesFile []byte

// locales is what Intl knows of languages: the head of the file that locales/generate.mjs writes.
type locales struct {
	Digits json.RawMessage  `json:"digits"` // of currencies that do not have two, by code
	Tags   map[string]place `json:"tags"`
	Blocks []block          `json:"blocks"` // in the order of the file
}

// place is where a locale is: its language, and its place among those of that which differ.
type place struct {
	language string
	at       int
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *place) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&p.language, &p.at}) }

// block is the locales of a language, gzipped JSON of this many bytes.
type block struct {
	language string
	size     int
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *block) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&b.language, &b.size})
}

// international is what the functions of Intl keep in a child. Scripts choose keys among those of
// the file and the options of a collator, and the names of time zones, of which a few are kept.
type international struct {
	head      *locales
	data      map[string][]json.RawMessage // by language
	collators map[string]*collate.Collator
	zones     map[string]*time.Location
}

// maxKept is how many collators and how many time zones are kept.
const maxKept = 64

// known returns the head of the file.
func (i *international) known() *locales {
	if i.head == nil {
		i.head, i.data = &locales{}, map[string][]json.RawMessage{}
		size := binary.BigEndian.Uint32(localesFile)
		if err := json.Unmarshal(localesFile[4:4+size], i.head); err != nil {
			panic("jsvm: the embedded locales: " + err.Error()) // a mistake of the build
		}
	}
	return i.head
}

// locale returns the JSON of a known locale.
func (i *international) locale(p place) json.RawMessage {
	head := i.known()
	if i.data[p.language] == nil {
		rest := localesFile[4+binary.BigEndian.Uint32(localesFile):]
		for _, b := range head.Blocks {
			if b.language == p.language {
				r, err := gzip.NewReader(bytes.NewReader(rest[:b.size]))
				var all []json.RawMessage
				if err == nil {
					err = json.NewDecoder(r).Decode(&all)
				}
				if err != nil {
					panic("jsvm: the embedded locales: " + err.Error()) // a mistake of the build
				}
				i.data[p.language] = all
			}
			rest = rest[b.size:]
		}
	}
	return i.data[p.language][p.at]
}

// find returns the known locale that a tag stands for: its own, or that of the tag without parts
// from its end.
func (i *international) find(tag string) string {
	all := i.known().Tags
	for tag != "" {
		if _, ok := all[tag]; ok {
			return tag
		}
		tag = tag[:max(strings.LastIndexByte(tag, '-'), 0)]
	}
	return ""
}

// nativeTag returns the canonical form of a language tag, undefined for one that is malformed.
func nativeTag(m *vm, in arguments) value {
	if len(in.s[0]) > 100 || strings.Contains(in.s[0], "_") {
		return undefined()
	}
	tag, err := language.Raw.Parse(in.s[0])
	if _, unknown := err.(language.ValueError); err != nil && !unknown {
		return undefined()
	}
	text := tag.String()
	if err != nil { // well-formed, of a language that x/text does not know
		text = in.s[0]
	}
	return m.newString(text)
}

// nativeLocale returns the known locale for a tag without extensions, undefined for none.
func nativeLocale(m *vm, in arguments) value {
	if found := m.intl.find(in.s[0]); found != "" {
		return m.newString(found)
	}
	return undefined()
}

// nativeLocaleData returns the JSON of a known locale.
func nativeLocaleData(m *vm, in arguments) value {
	at, ok := m.intl.known().Tags[in.s[0]]
	if !ok {
		return undefined()
	}
	text := m.intl.locale(at)
	return m.newString(string(text[:len(text)-1]) + `,"digits":` + string(m.intl.head.Digits) + "}")
}

var offsetZone = regexp.MustCompile(`^([+-])([01]\d|2[0-3])(?::?([0-5]\d))?$`)

// zone returns a time zone by its name in any case, or by its offset such as +05:30, and its
// canonical name. It returns nil for none.
func (i *international) zone(name string) (*time.Location, string) {
	if len(name) > 50 {
		return nil, ""
	}
	if match := offsetZone.FindStringSubmatch(name); match != nil {
		hours, _ := strconv.Atoi(match[2])
		minutes, _ := strconv.Atoi("0" + match[3])
		seconds := hours*3600 + minutes*60
		if match[1] == "-" {
			seconds = -seconds
		}
		canonical := fmt.Sprintf("%s%02d:%02d", match[1], hours, minutes)
		return time.FixedZone(canonical, seconds), canonical
	}
	switch strings.ToLower(name) {
	case "utc", "etc/utc", "etc/gmt", "gmt", "etc/uct", "etc/zulu", "zulu", "uct", "universal", "etc/universal",
		"etc/greenwich", "greenwich", "gmt0", "etc/gmt0":
		return time.UTC, "UTC"
	case "local", "":
		return nil, ""
	}
	if z, ok := i.zones[name]; ok {
		return z, name
	}
	for _, spelled := range []string{name, titled(name)} {
		z, err := time.LoadLocation(spelled)
		if err != nil {
			continue
		}
		if i.zones == nil || len(i.zones) >= maxKept {
			i.zones = map[string]*time.Location{}
		}
		i.zones[spelled] = z
		return z, spelled
	}
	return nil, ""
}

// titled returns the name of a zone as most are spelled: America/Port_of_Spain.
func titled(name string) string {
	b := []byte(strings.ToLower(name))
	for i, c := range b {
		word := string(b[i:min(i+3, len(b))])
		if c >= 'a' && c <= 'z' && (i == 0 || strings.IndexByte("/_-", b[i-1]) >= 0) && word != "of_" && word != "es_" {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// nativeZone returns the canonical name of a time zone, undefined for none.
func nativeZone(m *vm, in arguments) value {
	z, name := m.intl.zone(in.s[0])
	if z == nil {
		return undefined()
	}
	return m.newString(name)
}

// at returns a time, a number of milliseconds, in the zone that a script names.
func (m *vm) at(args []value) (time.Time, bool) {
	s, ok := m.strings(args[0])
	if !ok {
		return time.Time{}, false
	}
	ms, ok := m.number(args[1])
	z, _ := m.intl.zone(s[0])
	if !ok || z == nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(ms)).In(z), true
}

// nativeOffset returns the offset of a zone at a time, in seconds.
func nativeOffset(m *vm, in arguments) value {
	t, ok := m.at(in.all)
	if !ok {
		return m.throw("there is no such time zone")
	}
	_, offset := t.Zone()
	return m.newNumber(float64(offset))
}

// nativeZoneAbbreviation returns the abbreviation of a zone at a time.
func nativeZoneAbbreviation(m *vm, in arguments) value {
	t, ok := m.at(in.all)
	if !ok {
		return m.throw("there is no such time zone")
	}
	name, _ := t.Zone()
	return m.newString(name)
}

// collator returns what orders texts of a locale. options are the sensitivity and, after spaces,
// "numeric" and "upper" for upper case first.
func (i *international) collator(locale, options string) *collate.Collator {
	key := locale + " " + options
	if c := i.collators[key]; c != nil {
		return c
	}
	words := strings.Fields(options)
	extension := map[string]string{"base": "ks-level1", "accent": "ks-level2", "variant": "ks-level3"}[words[0]]
	if slices.Contains(words, "numeric") {
		extension = "kn-true-" + extension
	}
	if locale == "fr-CA" { // accents count from the end
		extension = "kb-true-" + extension
	}
	switch base, _, _ := strings.Cut(locale, "-"); {
	case base == "nb" || base == "nn" || base == "no": // x/text has their letters as Danish
		locale = "da"
	case base == "gl": // as others that x/text does not have, or not as it is now
		locale = "es"
	case strings.HasPrefix(locale, "sr-Latn"):
		locale = "hr"
	}
	tag := language.Make(locale + "-u-" + extension)
	c := collate.New(tag, collate.OptionsFromTag(tag))
	if i.collators == nil || len(i.collators) >= maxKept {
		i.collators = map[string]*collate.Collator{}
	}
	i.collators[key] = c
	return c
}

// scriptsFirst are the scripts that come before others in a language, which x/text does not have.
var scriptsFirst = map[string][]*unicode.RangeTable{
	"bg": {unicode.Cyrillic}, "ru": {unicode.Cyrillic}, "sr": {unicode.Cyrillic},
	"uk": {unicode.Cyrillic}, "el": {unicode.Greek}, "zh": {unicode.Han}, "ko": {unicode.Hangul, unicode.Han},
	"ja": {unicode.Latin, unicode.Hiragana, unicode.Katakana, unicode.Han},
}

// scriptRank returns the place of a letter's script in a list.
func scriptRank(scripts []*unicode.RangeTable, r rune) int {
	for i, s := range scripts {
		if unicode.Is(s, r) {
			if s == unicode.Katakana { // one with Hiragana
				i--
			}
			return i
		}
	}
	return len(scripts)
}

// byScript compares the scripts of the letters at the first place where two texts differ by more
// than accents and case; 0 if they are the same.
func (i *international) byScript(locale, a, b string) int {
	base, _, _ := strings.Cut(locale, "-")
	scripts := scriptsFirst[base]
	if scripts == nil || strings.HasPrefix(locale, "sr-Latn") {
		return 0
	}
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		a, b = a[n:], b[m:]
		if x == y {
			continue
		}
		if unicode.IsLetter(x) && unicode.IsLetter(y) {
			if order := scriptRank(scripts, x) - scriptRank(scripts, y); order != 0 {
				return order
			}
		}
		if i.collator(locale, "base").CompareString(string(x), string(y)) != 0 {
			return 0
		}
	}
	return 0
}

var (
	cyrillic = strings.NewReplacer(
		"ѓ", "г\u030b", "Ѓ", "Г\u030b", "ќ", "к\u030b", "Ќ", "К\u030b", "ў", "у\u0302", "Ў", "У\u0302",
	)
	yi       = strings.NewReplacer("ї", "і\u030b", "Ї", "І\u030b")
	estonian = strings.NewReplacer("w", "ʌ", "W", "Ʌ")
)

// respelled returns a text with other letters in place of those that x/text has elsewhere: W is no
// V in Estonian, and some letters of Cyrillic are others with an accent.
func respelled(locale, text string) string {
	base, _, _ := strings.Cut(locale, "-")
	text = cyrillic.Replace(text)
	if base != "uk" {
		text = yi.Replace(text)
	}
	if base == "et" {
		text = estonian.Replace(norm.NFD.String(text))
	}
	return text
}

// nativeCompare compares two texts: locale, options as of collator, and the texts.
func nativeCompare(m *vm, in arguments) value {
	for i := range in.s[2:] {
		in.s[2+i] = respelled(in.s[0], in.s[2+i])
	}
	order := m.intl.byScript(in.s[0], in.s[2], in.s[3])
	if order == 0 {
		order = m.intl.collator(in.s[0], in.s[1]).CompareString(in.s[2], in.s[3])
	}
	if order != 0 && strings.HasSuffix(in.s[1], " upper") && strings.EqualFold(in.s[2], in.s[3]) &&
		m.intl.collator(
			in.s[0], "accent"+strings.TrimSuffix(strings.TrimPrefix(in.s[1], "variant"), " upper"),
		).CompareString(in.s[2], in.s[3]) == 0 {
		order = -order // they differ by case only
	}
	return m.newNumber(float64(max(-1, min(order, 1))))
}

var pluralNames = map[plural.Form]string{
	plural.Zero:  "zero",
	plural.One:   "one",
	plural.Two:   "two",
	plural.Few:   "few",
	plural.Many:  "many",
	plural.Other: "other",
}

// pluralOf returns the plural form of a number by its digits before and after the point.
func pluralOf(tag language.Tag, ordinal bool, whole, fraction string) string {
	rules := plural.Cardinal
	if ordinal {
		rules = plural.Ordinal
	}
	last := func(digits string) int { // the rules look at the last six digits, and whether there are more
		if len(digits) > 7 {
			digits = "1" + digits[len(digits)-7:]
		}
		n, _ := strconv.Atoi("0" + digits)
		return n
	}
	trimmed := strings.TrimRight(fraction, "0")
	if base, _ := tag.Base(); !ordinal && trimmed != "" && base.String() == "is" {
		// CLDR has another rule since x/text has read it
		if strings.HasSuffix(trimmed, "1") && !strings.HasSuffix(trimmed, "11") {
			return "one"
		}
		return "other"
	}
	if base, _ := tag.Base(); !ordinal && fraction == "" && strings.HasSuffix(whole, "000000") &&
		strings.Trim(whole, "0") != "" &&
		slices.Contains([]string{"ca", "es", "fr", "it", "pt"}, base.String()) {
		return "many" // millions, which CLDR has had since x/text has read it
	}
	return pluralNames[rules.MatchPlural(tag, last(whole), len(fraction), len(trimmed), last(fraction), last(trimmed))]
}

// nativePlural returns a plural form: locale, whether of ordinal numbers, digits before and after
// the point.
func nativePlural(m *vm, in arguments) value {
	return m.newString(pluralOf(language.Make(in.s[0]), isTrue(in.all[1]), in.s[1], in.s[2]))
}

// nativePluralCategories returns the plural forms of a locale, with spaces between: locale, whether
// of ordinal numbers.
func nativePluralCategories(m *vm, in arguments) value {
	tag, found := language.Make(in.s[0]), map[string]bool{}
	for n := range 201 {
		found[pluralOf(tag, isTrue(in.all[1]), strconv.Itoa(n), "")] = true
		found[pluralOf(tag, isTrue(in.all[1]), strconv.Itoa(n/10), strconv.Itoa(n%10))] = true
	}
	found[pluralOf(tag, isTrue(in.all[1]), "1000000", "")] = true
	all := slices.DeleteFunc([]string{"few", "many", "one", "two", "zero", "other"}, func(name string) bool {
		return !found[name]
	})
	return m.newString(strings.Join(all, " "))
}

// nativeFold returns a text in upper or lower case as a language has it: locale, text, whether
// upper.
func nativeFold(m *vm, in arguments) value {
	if isTrue(in.all[2]) {
		return m.newString(cases.Upper(language.Make(in.s[0])).String(in.s[1]))
	}
	lower := cases.Lower(language.Make(in.s[0]))
	parts := strings.Split(in.s[1], "İ") // x/text has two dots on it in Lithuanian
	for i, part := range parts {
		parts[i] = lower.String(part)
	}
	dotted := lower.String("İ")
	if base, _ := language.Make(in.s[0]).Base(); base.String() == "lt" {
		dotted = "i\u0307"
	}
	return m.newString(strings.Join(parts, dotted))
}
