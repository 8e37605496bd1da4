package slapd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
	"go.uber.org/goleak"
)

// The test binary runs itself again as a process that starts a server and is then killed.
const asVictim = "SLAPD_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(asVictim) == "" {
		os.Exit(m.Run())
	}
	s, err := Start(context.Background(), LDAP())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.URL)
	fmt.Println(s.folder)
	time.Sleep(time.Hour) // select {} would end a process in which nothing else runs: "all goroutines are asleep"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func answers(url string) bool {
	c, err := ldap.DialURL(url)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func TestStartAndStop(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // no goroutine waits for the server
	is := is.New(t)
	began := time.Now()
	s := Test(t, LDAP())
	t.Log("started in", time.Since(began))
	is.True(exists(s.folder))
	is.True(answers(s.URL))
	began = time.Now()
	s.Stop()
	t.Log("stopped in", time.Since(began))
	is.True(!exists(s.folder))
	is.True(!answers(s.URL))
	s.Stop()
}

// TestKilled: a test that is killed leaves neither a server nor a folder.
func TestKilled(t *testing.T) {
	is := is.New(t)
	Test(t, LDAP()) // skips without slapd
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), asVictim+"=1")
	out, err := victim.StdoutPipe()
	is.NoErr(err)
	is.NoErr(victim.Start())
	lines := bufio.NewScanner(out)
	is.True(lines.Scan())
	url := lines.Text()
	is.True(lines.Scan())
	folder := lines.Text()
	is.True(exists(folder))
	is.True(answers(url))
	is.NoErr(victim.Process.Kill())
	is.True(victim.Wait() != nil)
	for deadline := time.Now().Add(10 * time.Second); exists(folder) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	is.True(!exists(folder))
	is.True(!answers(url))
}

// TestNoStart: if the server does not start, the error contains the output of slapd.
func TestNoStart(t *testing.T) {
	is := is.New(t)
	Test(t, LDAP())
	tree := LDAP()
	tree.Add("cn=nobody,dc=elsewhere", "objectClass", "person", "cn", "nobody", "sn", "n")
	_, err := Start(t.Context(), tree)
	is.True(err != nil)
	is.True(strings.Contains(err.Error(), "dc=elsewhere"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Start(ctx, LDAP())
	is.True(errors.Is(err, context.Canceled))
	t.Setenv("SLAPD", "/nowhere")
	_, err = Start(t.Context(), LDAP())
	is.True(errors.Is(err, ErrNoServer))
}

func TestCrowd(t *testing.T) {
	for name, tree := range map[string]*Tree{"LDAP": LDAP(), "AD": AD()} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			tree.Crowd(1100, 10, 3300)
			s := Test(t, tree)
			c, err := ldap.DialURL(s.URL)
			is.NoErr(err)
			defer c.Close()
			is.NoErr(c.Bind(ReaderDN, ReaderPassword))
			count := func(filter string) int {
				r, err := c.SearchWithPaging(ldap.NewSearchRequest(BaseDN, ldap.ScopeWholeSubtree, 0, 0, 0,
					false, filter,
					[]string{"member"}, nil), 500)
				is.NoErr(err)
				n := 0
				for _, e := range r.Entries {
					n += 1 + 1000*len(e.GetAttributeValues("member"))
				}
				return n
			}
			is.Equal(count("(objectClass=person)"), 1100)
			is.Equal(count("(member=*)"), 10+1000*3300)

			dn := tree.PersonDN(UserName(0))
			rdn, rest, _ := strings.Cut(dn, "=")
			_, parent, _ := strings.Cut(rest, ",")
			is.NoErr(s.Rename(dn, rdn+"=sam"))
			is.Equal(count("(member="+rdn+"=sam,"+parent+")"), 3+1000*3*330) // its groups are updated
			is.NoErr(s.Set(rdn+"=sam,"+parent, "mail", "sam@example.org"))
			is.Equal(count("(mail=sam@example.org)"), 1)
			is.NoErr(s.Delete(rdn + "=sam," + parent))
			is.Equal(count("(objectClass=person)"), 1099)

			is.NoErr(c.Bind(tree.PersonDN(UserName(1)), PasswordOf(UserName(1))))
			_, err = c.SearchWithPaging(ldap.NewSearchRequest(BaseDN, ldap.ScopeWholeSubtree, 0, 0, 0, false,
				"(objectClass=person)", nil, nil), 200)
			is.True(ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded)) // the limit applies to this user
		})
	}
}

func TestProxy(t *testing.T) {
	is := is.New(t)
	tree := LDAP()
	tree.Crowd(50, 1, 1)
	s := Test(t, tree)
	for _, proxy := range []func(int) (*Proxy, error){s.Cut, s.Stall} {
		p, err := proxy(20)
		is.NoErr(err)
		defer p.Close()
		c, err := ldap.DialURL(p.URL)
		is.NoErr(err)
		defer c.Close()
		c.SetTimeout(time.Second)
		is.NoErr(c.Bind(ReaderDN, ReaderPassword))
		r, err := c.Search(ldap.NewSearchRequest(
			BaseDN, ldap.ScopeWholeSubtree, 0, 0, 0, false, "(objectClass=person)", nil, nil,
		))
		is.True(err != nil)
		is.Equal(len(r.Entries), 20)
		is.Equal(p.Entries(), 21)
	}
}
