package comments_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"
	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// directory is a tenant's users: exact names with display names.
type directory map[string]*string

func (d directory) DisplayNames(_ context.Context, names []string) (map[string]*string, error) {
	found := map[string]*string{}
	for _, name := range names {
		for exact, shown := range d {
			if fold.Name(name) == fold.Name(exact) {
				found[exact] = shown
			}
		}
	}
	return found, nil
}

// mentioned returns the mentions of a message, parted by spaces.
func mentioned(message string, users directory) string {
	found, _ := users.DisplayNames(context.Background(), comments.Candidates(message))
	var names []string
	for _, m := range comments.Mentioned(message, found) {
		names = append(names, m.Username)
	}
	return strings.Join(names, " ")
}

func TestMentions(t *testing.T) {
	long := strings.Repeat("x", 128)
	users := directory{}
	for _, name := range []string{
		"jo", "jo.smith", "Mia", "jö", "straße", "a", "b-", "jo@example.com", "日本", "x_y", "n1", long, "jo—",
	} {
		users[name] = nil
	}
	for message, want := range map[string]string{
		"": "", "hello": "", "@": "", "@@": "", "@ jo": "", "@nobody": "",
		"@jo": "jo", "hi @jo, look": "jo", "@jo.": "jo", "@jo...": "jo", "@jo!": "jo",
		"@jo?": "jo", "(@jo)": "jo", "@jo's": "jo", "@jo:": "jo", "*@jo*": "jo",
		"@jo-": "jo", "@jo_": "jo", "@jo+1": "jo", "\n@jo\n": "jo", "\t@jo": "jo",
		"“@jo”": "jo", "@jo\u00a0x": "jo", "@jo\u200bx": "jo", "- @jo": "jo", "...@jo": "jo",
		// the longest that is a user
		"@jo.smith": "jo.smith", "@jo.smith.": "jo.smith", "@jo.smithy": "jo", "@jo.smith-x": "jo.smith",
		// whatever the case, by its exact name
		"@JO": "jo", "@mia": "Mia", "@MIA @mia @Mia": "Mia", "@JÖ": "jö", "@jo\u0308": "jö", "@STRASSE": "straße",
		// not at a word's start
		"@joe": "", "x@jo": "", "1@jo": "", "jo@jo": "", "x_@jo": "", "@@jo": "", "é@jo": "", "mail@example.com": "",
		"@jo@example.com": "jo@example.com", "@jo@mia": "jo", "@jo @mia @nobody @a": "jo Mia a",
		"@b-": "b-", "@b": "", "@b-.": "b-",
		"@mia @jo @mia": "Mia jo", "@日本": "日本", "@日本語": "日本", "@日本。": "日本", "@x_y": "x_y",
		"@x_": "", "@n1": "n1", "@n": "", "@jo/ x": "jo", "/@jo": "jo", "@jo/@mia": "jo Mia",
		"@" + long: long, "@" + long + "x": "", "@" + long + ".": long, "@" + long + "-x": long,
		"@jo—@mia": "jo— Mia", "@.jo": "", "@-jo": "", "\x00@jo": "jo", "@jo\x00": "jo", "@jo\xff": "jo", "@\xff": "",
	} {
		if got := mentioned(message, users); got != want {
			t.Errorf("%q mentions %q, want %q", message, got, want)
		}
	}
}

// TestMentionsInScriptsWithoutSpaces: words of some scripts stand beside each other, and particles
// beside names.
func TestMentionsInScriptsWithoutSpaces(t *testing.T) {
	users := directory{"mia": nil, "小明": nil, "民수": nil, "jo.smith": nil, "example": nil, "สมชาย": nil}
	for message, want := range map[string]string{
		"请@mia看一下": "mia", "@miaさん": "mia", "@miaー": "mia", "안녕@mia": "mia",
		"@mia님": "mia", "请@小明看一下": "小明", "「@mia」": "mia", "@mia，你好": "mia",
		"ดู@สมชายครับ": "สมชาย", "สวัสดี@miaครับ": "mia", "请@jo.smith看": "jo.smith",
		"请@mia和@小明": "mia 小明", "@miá看": "", "@mia\u0301看": "",
		"用户@example.com": "", "邮箱:mia@example.com": "", "привет@mia": "", "привет @mia": "mia", "@miaпривет": "",
	} {
		if got := mentioned(message, users); got != want {
			t.Errorf("%q mentions %q, want %q", message, got, want)
		}
	}
}

// TestMentionsOutsideOfCode: code, addresses and names of packages mention nobody, what stands
// beside them does.
func TestMentionsOutsideOfCode(t *testing.T) {
	users := directory{"mia": nil, "jo": nil, "mia.smith": nil, "scope": nil}
	for message, want := range map[string]string{
		"_@mia_": "mia", "__@mia__ and *@jo*": "mia jo", "~~@mia~~": "mia",
		"[@mia](https://x.example/@jo)": "mia", "[x](/u/@jo) @mia": "mia", "[x](https://a.example)@mia": "mia",
		"https://medium.example/@mia/post": "", "HTTPS://X.EXAMPLE/@mia": "",
		"www.example.com/@mia": "", "medium.example/@mia": "", "localhost:8080/@mia": "mia",
		"(see https://x.example/@mia) @jo": "jo", "ftp://x/@mia": "",
		"https://x.example/a(@mia)b": "", "https://x.example，@mia": "mia", "<https://x.example/@mia>@jo": "jo",
		"a@mia": "", "jo.x@mia.example": "",
		"<jo@mia.example>": "", "mailto:jo@mia": "", "@mia.smith/@jo": "mia.smith jo",
		"npm i @mia/pkg": "", "@scope/package @jo": "jo", "@mia.smith/x": "",
		"@mia, @jo/x": "mia", "@mia and/or @jo": "mia jo", "@mia/ @jo": "mia jo", "@mia/看": "mia",
		"`@mia`": "", "`a` @mia `b`": "mia", "``@jo ` @jo`` @mia": "mia", "`@mia": "mia",
		"``@mia`": "mia", "\\`@mia\\`": "mia", "\\\\`@mia`": "", "`a\n@mia`": "", "`a\n\n@mia`": "mia",
		"```\n@mia\n```": "", "```go\n@mia\n```\n@jo": "jo", "~~~\n@mia\n```\n@mia\n~~~\n@jo": "jo",
		"````\n```\n@mia\n````": "", "```\n@mia": "", "  ```\n@mia\n  ```": "",
		"> ```\n> @mia\n> ```\n@jo": "jo", "> ```\n> @mia\n\n@jo": "jo", "- ```\n  @mia\n  ```\n- @jo": "jo",
		"1. ~~~\n   @mia\n   ~~~": "", "``` @mia ```": "", "@jo\n```\n@mia\n```": "jo",
		"```\r\n@mia\r\n```\r\n@jo": "jo", "x ``` @mia": "mia", "# `@jo` @mia": "mia",
	} {
		if got := mentioned(message, users); got != want {
			t.Errorf("%q mentions %q, want %q", message, got, want)
		}
	}
}

func TestMentionsAreBounded(t *testing.T) {
	is := is.New(t)
	users, message, first := directory{}, "", ""
	for i := range 200 {
		name := fmt.Sprintf("first-%03d.last_name@example.com", i) // six readings each
		users[name] = nil
		message += "@" + name + ", "
		if i < 100 {
			first += " " + name
		}
	}
	is.Equal(mentioned(message, users), first[1:]) // however many readings they have
	is.Equal(comments.Spots(message), 100)
	longest := "a" + strings.Repeat("-a", 15)
	users[longest], users[longest+"-a"] = nil, nil
	is.Equal(mentioned("@"+longest+"-a", users), longest) // of a seventeenth reading nobody thinks
	is.Equal(mentioned("@"+longest+"- @"+longest+"... @"+longest, users), longest)
	is.Equal(len(comments.Candidates(strings.Repeat("@a-", 20_000))), 1600)
	is.Equal(len(comments.Candidates("@"+strings.Repeat("a-", 30_000))), 16)
	is.Equal(len(comments.Candidates(strings.Repeat("@-", 30_000))), 0) // a name has a letter or digit
	is.Equal(len(comments.Candidates("@"+strings.Repeat("x", 60_000))), 0)
}

// TestMentionsInLongTextSize: the time that a message takes grows with its length only.
func TestMentionsInLongTextSize(t *testing.T) {
	for _, part := range []string{
		"`", "` ``", "`\n\n", "\\`", "@a-", "@é-", "@小", "> ", "- ", "```\n", "~~~", "](", "[](", "www.", "a.",
		"x://", "a.aa/", "(((", "_", "_@",
	} {
		began := time.Now()
		comments.Candidates(strings.Repeat(part, (1<<16)/len(part)) + "@jo")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q, 64 KiB of it: %s", part, took)
		}
	}
}

// TestNameRunes: what may be in a mention is what principals takes for usernames; of the rare runes
// every 101st is tried.
func TestNameRunes(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r > 0x250 && r%101 != 0 && (r < 0x2000 || r > 0x2100) && (r < 0xff00 ||
			r > 0xffff) || r > 0x20000 && r%1009 != 0 {
			continue
		}
		want := principals.ValidUsername("1"+string(r)+"1") == nil
		if decomposed := norm.NFKC.String(string(r)); want != comments.NameRune(r) &&
			!strings.Contains(decomposed, "  ") {
			t.Errorf("%U: %v, want %v", r, !want, want)
		}
	}
}

// TestMentionsOfDirectoryNames: names as directories have them.
func TestMentionsOfDirectoryNames(t *testing.T) {
	users := directory{}
	for _, name := range []string{"o'brien", "o", "anna_corp#EXT#@x", "a&b", "$svc", "Anna Maria", "admin", ".net"} {
		users[name] = nil
	}
	for message, want := range map[string]string{
		"@o'brien's idea": "o'brien", "@o'brien": "o'brien", "@o's": "o",
		"ask @anna_corp#EXT#@x.": "anna_corp#EXT#@x", "@a&b!": "a&b", "(@$svc)": "$svc",
		"@Anna Maria looks": "Anna Maria", "@anna maria, @o": "Anna Maria o", "@anna  maria": "",
		"@Anna": "", "@ａｄｍｉｎ": "admin", "@.net.": ".net",
	} {
		if got := mentioned(message, users); got != want {
			t.Errorf("%q mentions %q, want %q", message, got, want)
		}
	}
	delete(users, "o'brien")
	is.New(t).Equal(mentioned("@o'brien's", users), "o")
}

func TestExcerpt(t *testing.T) {
	is := is.New(t)
	for message, want := range map[string]string{
		"": "", " \n\t ": "", "a": "a",
		"  a\r\n\tb  c ": "a b c", strings.Repeat("ü", 201): strings.Repeat("ü", 200), "a\u2028b": "a b",
		strings.Repeat("x", 199) + " y":   strings.Repeat("x", 199),
		strings.Repeat("x", 198) + "  yy": strings.Repeat("x", 198) + " y",
	} {
		is.Equal(comments.Excerpt(message), want)
	}
}

// FuzzMentions: whatever a message says, candidates are bounded and valid usernames except for
// their form as a UUID, each stands in the message behind an @, and each user is mentioned once.
func FuzzMentions(f *testing.F) {
	for _, message := range []string{
		"@jo", "hi @jo.", "@jo.smith @MIA", "@@", "x@jo", "@jo@mia", "@jo\u0308", "@\xff", "@.a.",
		strings.Repeat("@a-", 50), "@日本",
	} {
		f.Add(message, "jo")
	}
	f.Add("@a.b-c", "A.B")
	f.Fuzz(func(t *testing.T, message, username string) {
		all := comments.Candidates(message)
		if len(all) > 1600 || comments.Spots(message) > 100 {
			t.Fatalf("%d candidates in %d spots", len(all), comments.Spots(message))
		}
		for _, name := range all {
			err := principals.ValidUsername(name)
			if err != nil && utf8.ValidString(name) && !strings.Contains(err.Error(), "username") ||
				!strings.Contains(message, "@"+name) {
				t.Fatalf("candidate %q: %v", name, err)
			}
		}
		if principals.ValidUsername(username) != nil || !strings.ContainsFunc(username, func(r rune) bool {
			return unicode.IsLetter(r) || unicode.IsDigit(r)
		}) {
			return
		}
		users := map[string]*string{username: nil}
		for _, text := range []string{message, "@" + username + " \n" + message, "@" + username + ".\n" + message} {
			mentions := comments.Mentioned(text, users)
			if len(mentions) > 1 || len(mentions) == 1 && mentions[0].Username != username {
				t.Fatalf("%q mentions %v", text, mentions)
			}
			if text != message && len(mentions) == 0 && marks(username) < 16 {
				t.Fatalf("%q does not mention %q", text, username)
			}
		}
	})
}

// marks counts the characters of a name beside which it may end for a reader.
func marks(name string) (n int) {
	for _, r := range name {
		if !unicode.In(r, unicode.L, unicode.M, unicode.Nd) || r >= 0x0e00 {
			n++
		}
	}
	return n
}
