package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/assistants/mcp"
)

// A host puts the skill into Config.Skills, and allows servers on its own machine. A conversation
// opens it.
func ExampleNew() {
	shop := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	shop.AddTool(&sdk.Tool{
		Name:        "order",
		Description: "Orders chairs.",
		InputSchema: json.RawMessage(`{"type": "object"}`),
	},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{Text: "ordered " + string(r.Params.Arguments)}},
			}, nil
		})
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shop }, nil))
	defer server.Close()

	skill := mcp.New(mcp.Options{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	config, err := json.Marshal(map[string]any{
		"url":     server.URL,
		"tools":   []string{"order"},
		"headers": map[string]string{"Authorization": "Bearer ${SHOP_TOKEN}"},
	})
	if err != nil {
		panic(err)
	}
	tools, end, err := skill.Open(context.Background(), conversation.Use{
		Skill:   assistants.Skill{Type: "mcp", Name: "shop", Config: config},
		Secrets: map[string]string{"SHOP_TOKEN": "secret"},
	})
	if err != nil {
		panic(err)
	}
	defer end()
	fmt.Println(tools[0].Name, "needs a confirmation:", tools[0].Confirm)
	fmt.Println(tools[0].Run(
		context.Background(), ai.ToolCall{ID: "1", Name: tools[0].Name, Arguments: `{"chairs":4}`},
	))
	// Output:
	// shop_order needs a confirmation: true
	// ordered {"chairs":4} <nil>
}
