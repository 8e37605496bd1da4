package httpapi_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestHandlersSendAndRead: a handler emits, notifies, sends e-mails and reads the datasets of its
// app, with the rights of who calls it.
func TestHandlersSendAndRead(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "admin", map[string]string{
		"webhooks/a.js": `export const POST = async ({ context, emit, notify, email }) => {
			const failed = []
			for (const f of [() => notify('nobody', { title: 'x' }), () => context.orders.rows({ filter: { ` +
			`none: 1 } })]) {
				try { await f() } catch (e) { failed.push(e.code + ': ' + e.message) }
			}
			return {
				event: (await emit('order.paid', { order: 5 })).state, one: Object.keys(await notify('MIA', { ` +
			`title: 'Paid', path: 'orders/5' })),
				many: (await email(['a@example.com', 'b@example.com'], { subject: 'Paid', html: '<b>x</b>' })).queued,
				fields: (await context.orders.fields()).map(f => f.name), rows: await context.orders.rows({ ` +
			`filter: { amount: { gt: 5 } }, sort: '-amount' }),
				count: await context.orders.count(), gone: typeof context.gone, failed,
			}
		}`,
	})
	dataset := func(data string) string {
		return read[struct{ ID string }](
			t, w.must(t, "admin", "POST", "/api/datasets", `{"name": "D", "data": `+data+`}`),
		).ID
	}
	orders := dataset(`{"fields": [{"name": "amount", "type": "numeric"}], "rows": [{"amount": 3}, {"amount": 7}, ` +
		`{"amount": 9}]}`)
	gone := dataset(`{}`)
	for alias, id := range map[string]string{"orders": orders, "gone": gone} {
		w.must(t, "admin", "PUT", h.path("/dependencies/"+alias), `{"datasetId": "`+id+`", "label": "L"}`)
	}
	w.must(t, "admin", "DELETE", "/api/datasets/"+gone, "") // its alias goes with it
	a := h.call(t, "POST", "a", "{}")
	is.Equal(a.status, 200)
	is.Equal(a.body,
		`{"event":"delivered","one":["id"],"many":2,"fields":["amount"],"rows":[{"amount":9},{"amount":7}],`+
			`"count":3,"gone":"undefined",`+
			`"failed":["invalid: There is no user nobody.","invalid: filter.none is no field of the dataset"]}`)

	is.Equal(read[page](t, w.must(t, "admin", "GET", h.path("/events?q=order"), "")).Total, 1)
	is.Equal(read[page](t, w.must(t, "admin", "GET", h.path("/messages?type=email&state=pending"), "")).Total, 2)
	told := read[page](t, w.must(t, "mia", "GET", "/api/notifications", ""))
	is.Equal(told.Total, 1)
	is.Equal(told.Embedded["inf:notification"][0]["path"], "orders/5")

	// What an app has sent goes with it.
	w.must(t, "admin", "DELETE", h.path(""), "")
	w.must(t, "admin", "POST", h.path("/_purge"), "")
	is.Equal(read[page](t, w.must(t, "mia", "GET", "/api/notifications", "")).Total, 0)
	var left int
	is.NoErr(w.db.QueryRowContext(
		t.Context(), "SELECT (SELECT count(*) FROM tc_events) + (SELECT count(*) FROM tc_messages)",
	).Scan(&left))
	is.Equal(left, 0)
}
