import jsonata from 'jsonata'

const data = { orders: [{ id: 1, items: [{ p: 2.5, n: 4 }, { p: 1, n: 1 }] }, { id: 2, items: [{ p: 10, n: 3 }] }] }

export const run = async () => [
  await jsonata('$sum(orders.items.(p * n))').evaluate(data), await jsonata("orders[id=2].items.{'total': p * n}").evaluate(data), await jsonata("$fromMillis(0, '[D1o] [MNn] [Y]')").evaluate({}), await jsonata("$formatNumber(12345.6, '#,##0.00')").evaluate({}),
  await jsonata('$map([1..3], function($x) { $x * $x })').evaluate({}), await jsonata("$sort(['b', 'a'])").evaluate({}),
]
