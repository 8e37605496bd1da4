package jsvm

import (
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Arguments returns the n arguments of a call of a function by a script; those that are missing are
// null. It returns errs.Invalid if there are more: one that the function does not know would be
// dropped without a word.
func Arguments(function string, args json.RawMessage, n int) ([]json.RawMessage, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, err
	}
	if len(all) > n {
		return nil, errs.New(errs.Invalid, "%s takes %d arguments at most, not %d", function, n, len(all))
	}
	for len(all) < n {
		all = append(all, json.RawMessage("null"))
	}
	return all, nil
}
