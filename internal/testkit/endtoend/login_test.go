package endtoend_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestLoginPage: a browser without a session that opens an app gets a form. The form leads to the
// app, also to one at a separate origin, and is shown again after a wrong password.
func TestLoginPage(t *testing.T) {
	for name, change := range map[string]func(*tenantcontent.Config){
		"sandbox":    func(*tenantcontent.Config) {},
		"own origin": withOrigins,
	} {
		t.Run(name, func(t *testing.T) {
			is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite, change)
			app := w.admin.app(t, "Hello", map[string]string{
				"index.html": `<!doctype html><script>window.done = {user: informer.user.username}</script>`,
			})
			is.NoErr(chromedp.Do(ctx, chromedp.Navigate(w.url+"/api/apps/"+app+"/view?tenant=acme")))
			enter := func(text string) {
				t.Helper()
				is.NoErr(chromedp.Do(ctx, chromedp.SendKeys(
					"input[name=username]", "admin",
				), chromedp.SendKeys("input[name=password]", text),
					chromedp.Submit("input[name=password]")))
			}
			enter("wrong")
			problem, err := chromedp.Run(ctx, chromedp.Text("p[role=alert]"))
			is.NoErr(err)
			is.Equal(problem, "Unable to log in")
			enter(password)
			is.Equal(ended(ctx, t), map[string]string{"user": "admin"})
		})
	}
}
