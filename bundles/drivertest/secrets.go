package drivertest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tenantcontent/tenantcontent/entity"
)

// testSecrets: no secret of free JSON leaves a tenant or comes into one, and a tenant keeps its own.
func testSecrets(_ *testing.T, f *fixture) {
	if f.Free == nil {
		return
	}
	id := f.some(1)[0]
	with := func(host, secret string) json.RawMessage {
		return json.RawMessage(`{"host": "` + host + `", "deep": [{"password": "` + secret + `"}], "env": {"KEY": "` + secret + `"},
			"headers": [{"name": "Authorization", "value": "` + secret + `"}]}`)
	}
	f.Free.Set(f.t, f.here, id, with("first", "hidden"))
	rows := f.export(f.here, []string{id})
	f.True(!bytes.Contains(rows[0].JSON, []byte("hidden"))) // Export gives it to entity.MaskSecrets
	f.True(bytes.Contains(rows[0].JSON, []byte("first")))   // and the rest travels

	f.land(f.there, rows, entity.Fail)
	f.says(f.there, id, json.RawMessage(`{"host": "first", "deep": [{}], "env": {}, "headers": [{"name": "Authorization"}]}`)) // no masks: entity.KeepSecrets
	f.Free.Set(f.t, f.there, id, with("second", "own"))
	for _, secret := range []string{entity.Mask, "forged"} {
		rows[0].JSON = bytes.ReplaceAll(rows[0].JSON, []byte(entity.Mask), []byte(secret))
		f.land(f.there, rows, entity.Overwrite)
		f.says(f.there, id, with("first", "own")) // Import gives it to entity.KeepSecrets, with what is there
	}
	f.says(f.here, id, with("first", "hidden"))
}

// says checks what free JSON says, however it is written.
func (f *fixture) says(tenant, id string, want json.RawMessage) {
	f.t.Helper()
	var says, ought any
	f.NoErr(json.Unmarshal(f.Free.Get(f.t, tenant, id), &says))
	f.NoErr(json.Unmarshal(want, &ought))
	f.Equal(says, ought)
}
