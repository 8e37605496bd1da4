package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// A host's own skill, for Config.Skills: its configuration names a currency, and a secret of the
// assistant pays for the rates.
func Example() {
	rates := conversation.Skill{
		SkillType: assistants.SkillType{
			Type: "rates", Name: "Exchange rates", Description: "Looks up exchange rates of today.",
			Accept: func(config json.RawMessage) error {
				var in struct {
					Base string `json:"base"`
				}
				if json.Unmarshal(config, &in) != nil || len(in.Base) != 3 {
					return errs.New(errs.Invalid, "base must be a currency such as EUR")
				}
				return nil
			},
		},
		Open: func(_ context.Context, u conversation.Use) ([]chat.Tool, func(), error) {
			var config struct {
				Base string `json:"base"`
			}
			if err := json.Unmarshal(u.Skill.Config, &config); err != nil {
				return nil, nil, err
			}
			if u.Secrets["RATES_KEY"] == "" {
				return nil, nil, errs.New(errs.Unavailable, "The assistant has no secret RATES_KEY.")
			}
			rate := chat.Tool{
				Tool: ai.Tool{Name: "rate", Description: "The rate of a currency to " + config.Base + "."},
				Run: func(context.Context, ai.ToolCall) (string, error) {
					return "1.17 " + config.Base, nil // the host asks its service with the secret
				},
			}
			return []chat.Tool{rate}, nil, nil
		},
	}

	tools, _, err := rates.Open(context.Background(), conversation.Use{
		Skill:   assistants.Skill{Type: "rates", Name: "rates", Config: json.RawMessage(`{"base": "EUR"}`)},
		Secrets: map[string]string{"RATES_KEY": "k"},
	})
	if err != nil {
		panic(err)
	}
	answer, err := tools[0].Run(context.Background(), ai.ToolCall{Name: "rate"})
	fmt.Println(tools[0].Description, answer, err)
	// Output: The rate of a currency to EUR. 1.17 EUR <nil>
}
