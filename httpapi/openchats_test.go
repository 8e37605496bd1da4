package httpapi_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestOpenConversations: a person has a number of conversations open at once, with apps and
// assistants. One more is refused before its skills are opened, and others have their own.
func TestOpenConversations(t *testing.T) {
	is := is.New(t)
	const most = 32
	var opened atomic.Int64
	skill := hosted("web", func(conversation.Use) ([]chat.Tool, func(), error) {
		opened.Add(1)
		return nil, nil, nil
	})
	turns := make([]aitest.Turn, most, most+2)
	for i := range turns {
		turns[i] = aitest.Turn{Text: []string{"He"}, Stall: true}
	}
	_, model := withModel(t, append(turns, done, done)...)
	w := newWorld(t, dbtest.SQLite, withAI(model), func(c *tenantcontent.Config) {
		c.Skills = []conversation.Skill{skill}
	})
	app := chatApp(t, w)
	w.withAI(t, "mia")
	assistant := "/api/assistants/" + added(t, w, "assistants", `{"name": "Helper", "skills": [{"type": "web"}]}`)
	w.must(t, "admin", "PUT", assistant+"/shares/mia", `{"accessLevel": 1}`)
	assistant += "/_chat"
	w.rebuilt(t, func(c *httpapi.Config) { c.AI = model }) // the chats of apps have as many answers as they want
	server := httptest.NewServer(w.http)
	defer server.Close()
	var hangUp context.CancelFunc
	for range most {
		var ctx context.Context
		ctx, hangUp = context.WithCancel(t.Context())
		defer hangUp()
		_, events := stream(ctx, t, w, server, app)
		_, err := readEvent(events)
		is.NoErr(err)
	}
	a := w.do(t, "admin", "POST", assistant, hello)
	is.Equal(a.status, 429)
	is.True(strings.HasPrefix(a.message(t), "Too many conversations are open"))
	is.True(a.header.Get("Retry-After") != "")
	is.Equal(opened.Load(), int64(0))
	w.must(t, "mia", "POST", assistant, hello)
	is.Equal(opened.Load(), int64(1))
	hangUp()
	until(t, "a conversation ends", func() bool { return w.do(t, "admin", "POST", assistant, hello).status == 200 })
	is.Equal(opened.Load(), int64(2))
}
