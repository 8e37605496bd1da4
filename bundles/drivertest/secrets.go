package drivertest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tenantcontent/tenantcontent/entity"
)

// testSecrets: no secret of free JSON leaves a tenant or comes into one, and a tenant keeps its
// own.
func testSecrets(_ *testing.T, f *fixture) {
	if f.Free == nil {
		return
	}
	id := f.some(1)[0]
	with := func(host, secret string) json.RawMessage {
		return json.RawMessage(`{"host": "` + host + `", "deep": [{"password": "` + secret +
			`"}], "env": {"KEY": "` + secret + `"},
			"headers": [{"name": "Authorization", "value": "` + secret + `"}]}`)
	}
	f.Free.Set(f.t, f.here, id, with("first", "hidden"))
	rows := f.export(f.here, []string{id})
	f.true(
		!bytes.Contains(rows[0].JSON, []byte("hidden")),
		"Export has a secret of free JSON, which it must give to entity.MaskSecrets: %s", rows[0].JSON,
	)
	f.true(
		bytes.Contains(rows[0].JSON, []byte("first")), "Export lacks what is no secret in free JSON: %s",
		rows[0].JSON,
	)

	f.land(f.there, rows, entity.Fail)
	f.says(f.there, id,
		json.RawMessage(`{"host": "first", "deep": [{}], "env": {}, "headers": [{"name": "Authorization"}]}`),
		"imported with masks for which there are no secrets: Import must give it to entity.KeepSecrets")
	f.Free.Set(f.t, f.there, id, with("second", "own"))
	for _, secret := range []string{entity.Mask, "forged"} {
		rows[0].JSON = bytes.ReplaceAll(rows[0].JSON, []byte(entity.Mask), []byte(secret))
		f.land(f.there, rows, entity.Overwrite)
		f.says(
			f.there, id, with("first", "own"),
			"imported over secrets of the tenant's own: Import must give it to entity.KeepSecrets, with what is there",
		)
	}
	f.says(f.here, id, with("first", "hidden"), "of the tenant that was exported")
}

// says checks what free JSON says, however it is written.
func (f *fixture) says(tenant, id string, want json.RawMessage, what string) {
	f.t.Helper()
	var says, ought any
	given := f.Free.Get(f.t, tenant, id)
	f.noErr(json.Unmarshal(given, &says), "reading free JSON")
	f.noErr(json.Unmarshal(want, &ought), "reading the JSON of the check")
	f.true(reflect.DeepEqual(says, ought), "Free JSON %s: got %s, want %s", what, given, want)
}
