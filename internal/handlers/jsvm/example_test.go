package jsvm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// A host that calls scripts names the interface alone: which engine runs them is decided in its main function.
func ExampleRuntime() {
	total := func(ctx context.Context, rt jsvm.Runtime, script string, order json.RawMessage) (json.RawMessage, error) {
		program, err := rt.Compile(ctx, jsvm.Source{Entry: "total.js", Files: jsvm.Files{"total.js": script}})
		if err != nil {
			return nil, err // errs.Invalid with file and line, if the script is wrong
		}
		result, err := rt.Run(ctx, program, jsvm.Call{
			Function: "total", Args: []json.RawMessage{order}, Limits: jsvm.Limits{Time: time.Second}, Tenant: "acme",
		})
		if err == nil && result.Outcome != jsvm.OK {
			err = result.Error
		}
		return result.Value, err
	}
	_ = total
}

func ExampleLimits_Within() {
	highest := jsvm.Limits{Time: 30 * time.Second, Memory: 128 << 20}
	l := jsvm.Limits{Time: time.Minute, Memory: 16 << 20}.Within(highest)
	fmt.Println(l.Time, l.Memory>>20, "MiB")
	// Output: 30s 16 MiB
}
