package cli

import (
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestReadmeApp follows "Five minutes with an app" in README.md: it writes the folder, runs it,
// calls its webhook, opens its page, and pushes it to a server.
func TestReadmeApp(t *testing.T) {
	is := is.New(t)
	readme, err := os.ReadFile("../../README.md")
	is.NoErr(err)
	_, section, found := strings.Cut(string(readme), "\n## Five minutes with an app\n")
	is.True(found)
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, 3)
	is.Equal(len(blocks), 3)
	folder, found := strings.CutPrefix(blocks[0][1], "make build\n")
	is.True(found)
	folder, found = strings.CutSuffix(folder, "bin/tenantcontent dev orders\n")
	is.True(found)

	t.Chdir(t.TempDir())
	out, err := exec.Command("sh", "-ec", folder).CombinedOutput()
	is.NoErr(err)
	is.Equal(string(out), "")
	d := develop(t, "orders")
	view := d.await(t, `View: +((http://127\.0\.0\.1:\S+)/dev/\S+\?app=(\S+))`)
	hook := d.await(t, `Webhook: +POST (\S+)`)
	order := regexp.MustCompile(`-d '(.*)' 'http://127.0.0.1:…/_hook/order\?token=…'`).FindStringSubmatch(blocks[1][1])
	is.Equal(len(order), 2)
	is.True(strings.Contains(hook[1], "/_hook/order?token="))
	res, err := http.Post(hook[1], "application/json", strings.NewReader(order[1]))
	is.NoErr(err)
	is.NoErr(res.Body.Close())
	is.Equal(res.StatusCode, http.StatusCreated)
	d.await(t, `webhook POST /order 201`)
	d.await(t, `ordered A chair`)

	jar, err := cookiejar.New(nil)
	is.NoErr(err)
	browser := &http.Client{Jar: jar}
	status, page := get(t, browser, view[1])
	is.Equal(status, http.StatusOK)
	is.True(strings.Contains(page, `fetch(window.informer.api + "_server/orders")`))
	status, orders := get(t, browser, view[2]+"/api/apps/"+view[3]+"/view/api/_server/orders")
	is.Equal(status, http.StatusOK)
	is.True(strings.Contains(orders, `"item":"A chair"`))
	is.Equal(d.stop(), 0)

	const password = "a long password"
	s := serving(t, "--data="+t.TempDir(), "--admin-password="+password)
	is.True(strings.HasSuffix(blocks[2][1], "\nbin/tenantcontent app push orders\n"))
	t.Setenv("TENANTCONTENT_SERVER", s.url)
	t.Setenv("TENANTCONTENT_TOKEN", s.login(t, "", "admin", password))
	pushed := done(t, "", "app", "push", "orders")
	is.True(strings.Contains(pushed, "Published the app"))
	is.True(strings.Contains(pushed, "View: "+s.url+"/api/apps/"))
}
