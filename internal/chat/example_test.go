package chat_test

import (
	"context"
	"fmt"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

func ExampleRun() {
	server := aitest.NewServer( // a model that looks, and then answers
		aitest.Turn{Calls: []ai.ToolCall{{ID: "1", Name: "stock", Arguments: `{"article": "chairs"}`}}},
		aitest.Turn{Text: []string{"There are ", "12 chairs."}},
	)
	defer server.Close()
	p, err := openai.New(openai.Options{URL: server.URL, Models: []openai.Model{{Name: "fast"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := chat.Run(context.Background(), chat.Options{
		Provider: p,
		Request:  ai.Request{Messages: []ai.Message{{Role: ai.User, Content: "How many chairs are there?"}}},
		Tools: []chat.Tool{{
			Tool: ai.Tool{Name: "stock", Description: "How many there are of an article", Parameters: []byte(`{"type": "object", "properties": {"article": {"type": "string"}}}`)},
			Run:  func(context.Context, ai.ToolCall) (string, error) { return "12", nil },
		}},
	}, func(e chat.Event) error {
		switch {
		case e.Call != nil:
			fmt.Println(e.Call.Name, e.Call.Arguments)
		case e.Result != nil:
			fmt.Println("→", e.Result.Content)
		}
		return nil
	})
	fmt.Println(out.Text, err)
	// Output:
	// stock {"article": "chairs"}
	// → 12
	// There are 12 chairs. <nil>
}
