// What Intl and the methods that go by it answer. hour12 is left out: Node.js 20 has a former reading of it.
let nth, part, parts
const t = (f) => {
  if (nth++ % parts !== part) return
  try {
    return f()
  } catch (e) {
    return e.message.includes('not supported here') ? 'unsupported' : e.name
  }
}
const L = [
  'en-US',
  'en-GB',
  'en-AU',
  'en-CA',
  'en-IN',
  'de-DE',
  'de-CH',
  'fr-FR',
  'fr-CA',
  'es-ES',
  'es-MX',
  'it-IT',
  'pt-BR',
  'nl-NL',
  'sv-SE',
  'nb-NO',
  'pl-PL',
  'ru-RU',
  'uk-UA',
  'el-GR',
  'ja-JP',
  'zh-CN',
  'de-US',
]
const d = [
  new Date(Date.UTC(2026, 10, 5, 13, 4, 5, 6)),
  new Date(Date.UTC(2026, 2, 29, 0, 30, 0)),
  new Date(Date.UTC(1999, 4, 31, 23, 59, 59, 999)),
]
const O = [
  undefined,
  { dateStyle: 'full' },
  { dateStyle: 'long', timeStyle: 'short' },
  { dateStyle: 'medium', timeStyle: 'medium' },
  { dateStyle: 'short', timeStyle: 'short' },
  { timeStyle: 'short' },
  { year: 'numeric', month: 'long', day: 'numeric' },
  { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric', hour: '2-digit', minute: '2-digit' },
  { year: 'numeric', month: '2-digit', day: '2-digit' },
  { month: 'short', day: 'numeric' },
  { month: 'long', year: 'numeric' },
  { month: 'long' },
  { weekday: 'short' },
  { hour: 'numeric' },
  { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
  { hour: 'numeric', minute: '2-digit', hourCycle: 'h12' },
  { minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
  { weekday: 'narrow', day: 'numeric', month: 'numeric' },
  { year: '2-digit', month: 'numeric' },
  { timeStyle: 'long' },
  { dateStyle: 'full', timeStyle: 'full' },
  { timeZoneName: 'short' },
  { hour: 'numeric', timeZoneName: 'shortOffset' },
  { hour: 'numeric', minute: 'numeric', timeZoneName: 'long' },
  { dayPeriod: 'short', hour: 'numeric' },
  { day: 'numeric' },
  { year: 'numeric' },
  { hourCycle: 'h23', hour: 'numeric', minute: 'numeric' },
]
const Z = ['UTC', 'America/New_York', 'Europe/Berlin', 'Asia/Kolkata']
const N = [-0, 1, -1.5, 1234.5, -1234567.891, 0.000001234, 1e21, 1.005, 2.5, -2.5, NaN, -Infinity, 999.995]
const NO = [
  undefined,
  { maximumFractionDigits: 0 },
  { minimumFractionDigits: 2, maximumFractionDigits: 2 },
  { style: 'percent' },
  { style: 'percent', minimumFractionDigits: 1 },
  { style: 'currency', currency: 'EUR' },
  { style: 'currency', currency: 'USD' },
  { style: 'currency', currency: 'JPY' },
  { style: 'currency', currency: 'CHF' },
  { style: 'currency', currency: 'GBP', currencyDisplay: 'code' },
  { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' },
  { style: 'currency', currency: 'USD', currencySign: 'accounting' },
  { style: 'currency', currency: 'KWD' },
  { maximumSignificantDigits: 3 },
  { minimumSignificantDigits: 4 },
  { useGrouping: false },
  { minimumIntegerDigits: 3 },
  { notation: 'compact' },
  { notation: 'compact', compactDisplay: 'long' },
  { notation: 'scientific' },
  { notation: 'engineering' },
  { signDisplay: 'always' },
  { signDisplay: 'exceptZero' },
  { signDisplay: 'never' },
  { style: 'currency', currency: 'EUR', signDisplay: 'always' },
  { roundingMode: 'floor', maximumFractionDigits: 1 },
  { roundingMode: 'halfEven', maximumFractionDigits: 0 },
  { style: 'unit', unit: 'kilometer' },
  { style: 'unit', unit: 'hour', unitDisplay: 'long' },
  { style: 'currency', currency: 'EUR', maximumFractionDigits: 0 },
  { roundingIncrement: 5, maximumFractionDigits: 2, minimumFractionDigits: 2 },
  { useGrouping: 'always' },
  { useGrouping: 'min2' },
]
// run answers every parts-th case of the first languages, the first after part others.
export const run = (one, of, languages) => {
  nth = 0
  part = one
  parts = of
  const out = {}
  for (const l of L.slice(0, languages)) {
    for (const o of O)
      for (const z of Z)
        for (const x of d.slice(0, z === 'UTC' ? 3 : 2))
          out[`D ${l} ${JSON.stringify(o)} ${z} ${x.getTime()}`] = t(() => x.toLocaleString(l, { timeZone: z, ...o }))
    for (const o of O)
      out[`DP ${l} ${JSON.stringify(o)}`] = t(() =>
        new Intl.DateTimeFormat(l, { ...o, timeZone: 'UTC' })
          .formatToParts(d[0])
          .map((p) => p.type + '=' + p.value)
          .join('|'),
      )
    for (const o of NO)
      for (const n of N) out[`N ${l} ${JSON.stringify(o)} ${Object.is(n, -0) ? '-0' : n}`] = t(() => n.toLocaleString(l, o))
    for (const o of NO)
      out[`NP ${l} ${JSON.stringify(o)}`] = t(() =>
        new Intl.NumberFormat(l, o)
          .formatToParts(-1234567.5)
          .map((p) => p.type + '=' + p.value)
          .join('|'),
      )
    for (const type of ['cardinal', 'ordinal']) {
      out[`P ${l} ${type}`] = t(() =>
        [
          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 19, 20, 21, 22, 23, 24, 80, 100, 101, 102, 103, 111, 1000, 1000000, 0.5, 1.5,
          2.5, 1.0,
        ]
          .map((n) => new Intl.PluralRules(l, { type }).select(n))
          .join(),
      )
      out[`PC ${l} ${type}`] = t(() => [...new Intl.PluralRules(l, { type }).resolvedOptions().pluralCategories].sort().join())
    }
    const words = [
      'Z',
      'z',
      'a',
      'A',
      'ä',
      'Ä',
      'o',
      'ö',
      'é',
      'e',
      'É',
      'ñ',
      'n',
      'ß',
      'ss',
      'å',
      'ø',
      'æ',
      'č',
      'c',
      'ch',
      'll',
      'co',
      'cote',
      'côte',
      'coté',
      'côté',
      '10',
      '2',
      '1',
      'résumé',
      'resume',
      'Resume',
      '-',
      '_',
      ' a',
      'a b',
      'ab',
      'a-b',
      'i',
      'I',
      'ı',
      'İ',
      'я',
      'ж',
      '日',
      '本',
      'あ',
      'ア',
      'ae',
      'zebra',
      'Œ',
      'oe',
      '!',
      '€',
      '$',
      'b',
      'B',
    ]
    out[`C ${l}`] = t(() => [...words].sort(new Intl.Collator(l).compare).join())
    for (const o of [{ numeric: true }, { sensitivity: 'base' }, { sensitivity: 'accent' }])
      out[`C ${l} ${JSON.stringify(o)}`] = t(() => {
        const c = new Intl.Collator(l, o).compare
        return words.map((w) => words.map((v) => c(w, v) + 1).join('')).join(' ')
      })
  }
  out.noarg = t(() => ['b', 'a', 'B', 'ä', 'Z'].sort((a, b) => a.localeCompare(b)).join())
  out.tr = t(() => ['i'.toLocaleUpperCase('tr'), 'I'.toLocaleLowerCase('tr'), 'ß'.toLocaleUpperCase('de')].join())
  out.arr = t(() => [1234.5, d[0], null, 'x'].toLocaleString('de-DE', { timeZone: 'UTC' }))
  out.big = t(() =>
    [12345678901234567890n.toLocaleString('de'), 12345n.toLocaleString('en-US', { style: 'currency', currency: 'USD' })].join(),
  )
  out.ro = t(() => JSON.stringify(new Intl.DateTimeFormat('en-US', { timeZone: 'UTC' }).resolvedOptions()))
  out.ro3 = t(() => JSON.stringify(new Intl.Collator('de').resolvedOptions()))
  out.ro4 = t(() =>
    JSON.stringify(
      new Intl.DateTimeFormat(undefined, {
        hour: 'numeric',
        minute: '2-digit',
        timeZone: 'Europe/Berlin',
        timeZoneName: 'short',
      }).resolvedOptions(),
    ),
  )
  out.ro5 = t(() => JSON.stringify(new Intl.PluralRules('pl').resolvedOptions()))
  for (const a of [
    'xx-invalid-locale-thing',
    'e',
    'de_DE',
    'en-US-u-nu-arab',
    'tlh',
    '',
    'en-US-u-hc-h23',
    'i-klingon',
    'zh-Hant',
    'ar',
    'th',
    'fa',
  ])
    out['loc ' + a] = t(() => new Date(0).toLocaleTimeString(a, { timeZone: 'UTC' }))
  for (const a of [
    { timeZone: 'Mars/X' },
    { timeZone: 'america/new_york' },
    { month: 'x' },
    { dateStyle: 'full', month: 'long' },
    { style: 'currency' },
    { style: 'x' },
  ])
    out['opt ' + JSON.stringify(a)] = [
      t(() => new Intl.DateTimeFormat('en', a).resolvedOptions().timeZone),
      t(() => new Intl.NumberFormat('en', a).format(1)),
    ].join()
  for (const u of ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'])
    for (const v of [-2, -1, -0, 0, 1, 2, 1.5])
      for (const o of [{}, { numeric: 'auto' }, { style: 'short' }, { style: 'short', numeric: 'auto' }])
        out[`R ${u} ${Object.is(v, -0) ? '-0' : v} ${JSON.stringify(o)}`] = t(() => new Intl.RelativeTimeFormat('en', o).format(v, u))
  for (const o of [
    {},
    { type: 'disjunction' },
    { style: 'short' },
    { style: 'narrow' },
    { type: 'unit' },
    { type: 'unit', style: 'narrow' },
    { type: 'disjunction', style: 'short' },
  ])
    for (const v of [[], ['a'], ['a', 'b'], ['a', 'b', 'c']])
      out[`L ${JSON.stringify(o)} ${v}`] = t(() => new Intl.ListFormat('en', o).format(v))
  out.sl = t(() => Intl.DateTimeFormat.supportedLocalesOf(['de', 'en-US', 'fr-x-foo']).join())
  out.gc = t(() => Intl.getCanonicalLocales(['EN-us', 'zh-hans-cn']).join())
  out.inst = t(() =>
    [
      Intl.DateTimeFormat() instanceof Intl.DateTimeFormat,
      String(Intl),
      Object.prototype.toString.call(new Intl.NumberFormat()),
      Intl.DateTimeFormat().resolvedOptions().timeZone,
    ].join(),
  )
  out.lt = t(
    () =>
      d[0].toLocaleTimeString('en-US', { timeZone: 'UTC' }) +
      d[0].toLocaleDateString('de-DE') +
      d[0].toLocaleTimeString('de-DE', { year: 'numeric' }) +
      new Date(NaN).toLocaleString('de'),
  )
  out.inv = t(() => new Intl.DateTimeFormat().format(NaN))
  out.year = [-1, 0, 1, 99, 12345]
    .map((y) =>
      t(() => {
        const x = new Date(0)
        x.setUTCFullYear(y)
        return x.toLocaleDateString('en-US', { timeZone: 'UTC' })
      }),
    )
    .join()
  out.ns = t(() =>
    ['1234567890123456789.123', '1e3', 'abc'].map((s) => new Intl.NumberFormat('en', { maximumFractionDigits: 5 }).format(s)).join(),
  )
  return out
}
