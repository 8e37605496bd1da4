package quickjs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
)

// A program calls quickjs.Child first in its main function. Then it can compile and run scripts.
func Example() {
	// func main() { quickjs.Child(); … }
	rt, err := quickjs.New(quickjs.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	ctx := context.Background()
	script, err := rt.Compile(ctx, jsvm.Source{Entry: "greet.js", Files: jsvm.Files{
		"greet.js": `import { upper } from './lib/text'
			export async function greet(name, host) {
				console.log('greeting', name)
				return upper(await host.translate('hello')) + ' ' + name
			}`,
		"lib/text.js": `export const upper = s => s.toUpperCase()`,
	}})
	if err != nil {
		log.Fatal(err)
	}
	result, err := rt.Run(ctx, script, jsvm.Call{
		Function: "greet",
		Args:     []json.RawMessage{[]byte(`"Jo"`)},
		Functions: map[string]jsvm.Function{
			"translate": func(context.Context, json.RawMessage) (json.RawMessage, error) { return []byte(`"bonjour"`), nil },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Outcome, string(result.Value), result.Logs[0].Text)
	// Output: ok "BONJOUR Jo" greeting Jo
}
