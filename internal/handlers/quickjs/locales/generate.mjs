// Writes locales.bin, what Intl of scripts knows of languages: names, patterns and signs of Unicode CLDR (Unicode License v3), as Node.js shows them.
// Run it with `node generate.mjs` when they are to be those of a newer CLDR. Each pattern is checked against Node.js for all months and some
// days; one that does not hold (whose literals depend on the month) is left out, and scripts that ask for it get an error.
import { gzipSync } from 'node:zlib'
import { writeFileSync } from 'node:fs'

const languages = 'bg ca cs da de el en es et eu fi fil fr ga gl hr hu id is it ja ko lt lv ms nb nl no pl pt ro ru sk sl sr sv tr uk vi zh'.split(' ')
const regions = []
for (let a = 65; a <= 90; a++) for (let b = 65; b <= 90; b++) regions.push(String.fromCharCode(a, b))
regions.push('001', '150', '419')

const exact = (tag) => {
  try {
    return new Intl.DateTimeFormat(tag).resolvedOptions().locale === tag
  } catch {
    return false
  }
}
const tags = []
for (const l of languages) {
  for (const t of [l, ...['Hans', 'Hant', 'Latn', 'Cyrl'].map((s) => `${l}-${s}`)]) {
    if (exact(t)) tags.push(t)
    for (const r of regions) if (exact(`${t}-${r}`)) tags.push(`${t}-${r}`)
  }
}

const at = (month, day, hour = 0) => new Date(Date.UTC(2026, month, day, hour, 4, 5, 678))
const days = [1, 2, 3, 4, 5, 6, 7, 23]

const of = (tag) => {
  const names = [] // lists of names of months and weekdays
  const list = (values) => {
    const key = JSON.stringify(values)
    let i = names.findIndex((n) => JSON.stringify(n) === key)
    if (i < 0) i = names.push(values) - 1
    return i
  }
  const make = (options) => new Intl.DateTimeFormat(tag, { timeZone: 'UTC', ...options })
  const render = (pattern, d) => pattern.map(([type, x]) => {
    switch (type) {
      case 'l': return x
      case 'y': return x === 2 ? '26' : '2026'
      case 'm': return String(d.getUTCMonth() + 1).padStart(x, '0')
      case 'd': return String(d.getUTCDate()).padStart(x, '0')
      case 'M': return names[x][d.getUTCMonth()]
      case 'w': return names[x][d.getUTCDay()]
    }
  }).join('').replaceAll('\u202f', ' ') // as V8 writes it, but in parts
  // The pattern of a date: literals, and fields with the least number of digits or the list of their names.
  const datePattern = (options) => {
    const f = make(options)
    const pattern = []
    for (const [i, { type, value }] of f.formatToParts(at(2, 5)).entries()) {
      const all = (dates) => dates.map((d) => f.formatToParts(d)[i]?.value)
      if (type === 'literal') pattern.push(['l', value])
      else if (type === 'year') pattern.push(['y', value.length === 2 ? 2 : 1])
      else if (type === 'day') pattern.push(['d', /^\d+$/.test(value) ? value.length : NaN])
      else if (type === 'month' && /^\d+$/.test(value)) pattern.push(['m', value.length])
      else if (type === 'month') pattern.push(['M', list(Array.from({ length: 12 }, (_, m) => all([at(m, 5)])[0]))])
      else if (type === 'weekday') pattern.push(['w', list(Array.from({ length: 7 }, (_, n) => all([at(10, 1 + n)])[0]))])
      else return null
    }
    for (let m = 0; m < 12; m++) for (const d of days) if (f.format(at(m, d)) !== render(pattern, at(m, d))) return null
    return pattern
  }
  const timeTypes = ['hour', 'minute', 'second', 'dayPeriod']
  const timePattern = (options, zone) => {
    const f = make(options)
    const pattern = []
    for (const { type, value } of f.formatToParts(at(0, 1, 5))) {
      if (type === 'literal') pattern.push(['l', value])
      else if (type === 'hour') pattern.push(['h', value.length])
      else if (type === 'minute') pattern.push(['i', value.length])
      else if (type === 'second') pattern.push(['s', value.length])
      else if (type === 'dayPeriod') pattern.push(['p', list([value, f.formatToParts(at(0, 1, 17)).find((p) => p.type === 'dayPeriod').value])])
      else if (type === 'timeZoneName') pattern.push(['z', zone])
      else return null
    }
    return pattern
  }
  // How a date and a time stand together: [before, between, after, whether the time comes first].
  const glue = (options) => {
    const parts = make({ ...options }).formatToParts(at(2, 5, 5))
    const is = (p) => timeTypes.includes(p.type)
    const first = parts.findIndex(is), last = parts.findLastIndex(is)
    const dates = parts.map((p, i) => (p.type !== 'literal' && !is(p) && p.type !== 'timeZoneName' ? i : -1)).filter((i) => i >= 0)
    const [d1, d2] = [dates[0], dates.at(-1)]
    const text = (a, b) => parts.slice(a, b).map((p) => p.value).join('')
    const date = datePattern(options.dateStyle ? { dateStyle: options.dateStyle } : { ...options, hour: undefined, minute: undefined, second: undefined })
    if (!date || (first < d2 && last > d1)) return null
    const own = render(date, at(2, 5))
    const whole = text(0, parts.length)
    const time = text(first, last + 1)
    const a = whole.replaceAll('\u202f', ' ').indexOf(own), b = whole.indexOf(time)
    if (a < 0 || b < 0) return null
    return a < b ? [whole.slice(0, a), whole.slice(a + own.length, b), 0] : [whole.slice(0, b), whole.slice(b + time.length, a), 1]
  }
  const o = { dates: {}, times: {}, styles: {}, glue: {} }
  const value = { n: 'numeric', 2: '2-digit', s: 'short', l: 'long', a: 'narrow' }
  const pool = []
  const pooled = (p) => {
    const key = JSON.stringify(p)
    let i = pool.findIndex((x) => JSON.stringify(x) === key)
    if (i < 0) i = pool.push(p) - 1
    return i
  }
  for (const w of ['', 's', 'l', 'a']) for (const y of ['', 'n', '2']) for (const m of ['', 'n', '2', 's', 'l', 'a']) for (const d of ['', 'n', '2']) {
    const key = `${w || '-'}${y || '-'}${m || '-'}${d || '-'}`
    if (key === '----') continue
    const options = { weekday: value[w], year: value[y], month: value[m], day: value[d] }
    const p = datePattern(options)
    if (!p) continue
    const g = glue({ ...options, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
    o.dates[key] = [pooled(p), g && pooled(g)]
  }
  for (const h of ['', 'n', '2']) for (const i of ['', 'n', '2']) for (const s of ['', 'n', '2']) for (const c of h ? ['h12', 'h23'] : ['']) {
    const key = `${h || '-'}${i || '-'}${s || '-'}${c}`
    if (key === '---' || (h && s && !i)) continue
    const options = { hour: value[h], minute: value[i], second: value[s], ...(c && { hourCycle: c }) }
    o.times[key] = [pooled(timePattern(options))]
    if (h) o.times[key].push(pooled(timePattern({ ...options, timeZoneName: 'short' }, 'short')))
  }
  for (const style of ['full', 'long', 'medium', 'short']) {
    const own = make({ timeStyle: 'short' }).resolvedOptions().hourCycle
    o.styles[style] = [pooled(datePattern({ dateStyle: style })), pooled(glue({ dateStyle: style, timeStyle: 'short' }))]
    for (const c of ['h12', 'h23']) o.styles[style].push(pooled(timePattern({ timeStyle: style, hourCycle: c }, style === 'full' ? 'long' : 'short')))
    o.hours = own
  }
  const dated = make({ year: 'numeric', month: 'numeric', day: 'numeric', timeZoneName: 'short' }).formatToParts(at(2, 5))
  if (dated.at(-1).type === 'timeZoneName') o.beforeZone = dated.at(-2).value
  o.pool = pool
  o.names = names
  const zone = (z, kind, d = at(0, 1)) => new Intl.DateTimeFormat(tag, { timeZone: z, timeZoneName: kind }).formatToParts(d).find((p) => p.type === 'timeZoneName').value
  o.offset = zone('Asia/Kolkata', 'longOffset').replace('+05:30', '{}')
  o.gmt = zone('Europe/London', 'longOffset')

  const number = (options, v) => new Intl.NumberFormat(tag, options).formatToParts(v)
  const part = (parts, type) => parts.find((p) => p.type === type)?.value ?? ''
  const big = number({ useGrouping: 'always' }, -1234567890.5)
  const ints = big.filter((p) => p.type === 'integer').map((p) => p.value.length)
  const shape = (parts) => parts.map((p) => ({ integer: '0', group: '', decimal: '', fraction: '', literal: p.value, percentSign: '%', minusSign: '-', plusSign: '+', currency: '¤' })[p.type] ?? p.value).join('').replace(/0+/, '0')
  o.number = {
    system: new Intl.NumberFormat(tag).resolvedOptions().numberingSystem,
    decimal: part(big, 'decimal'), group: part(big, 'group'), minus: part(big, 'minusSign'), plus: part(number({ signDisplay: 'always' }, 1), 'plusSign'),
    sizes: [ints.at(-1), ints.at(-2)], least: number({}, 1234).some((p) => p.type === 'group') ? 1 : 2, nan: part(number({}, NaN), 'nan'), infinity: part(number({}, Infinity), 'infinity'),
    percentSign: part(number({ style: 'percent' }, 1), 'percentSign'), exponent: part(number({ notation: 'scientific' }, 1e5), 'exponentSeparator'),
    percent: [shape(number({ style: 'percent' }, 1)), shape(number({ style: 'percent' }, -1))],
    currency: ['symbol', 'code'].map((currencyDisplay) => ['standard', 'accounting'].map((currencySign) => [1, -1].map((v) => shape(number({ style: 'currency', currency: 'EUR', currencyDisplay, currencySign, maximumFractionDigits: 0 }, v))))),
    plusCurrency: ['symbol', 'code'].map((currencyDisplay) => shape(number({ style: 'currency', currency: 'EUR', currencyDisplay, signDisplay: 'always', maximumFractionDigits: 0 }, 1))),
    symbols: {}, narrow: {}, money: part(number({ style: 'currency', currency: 'EUR', useGrouping: 'always' }, 12345678), 'group'), moneyDecimal: part(number({ style: 'currency', currency: 'EUR' }, 1), 'decimal'),
  }
  for (const currency of Intl.supportedValuesOf('currency')) {
    const symbol = part(number({ style: 'currency', currency }, 1), 'currency'), narrow = part(number({ style: 'currency', currency, currencyDisplay: 'narrowSymbol' }, 1), 'currency')
    if (symbol !== currency) o.number.symbols[currency] = symbol
    if (narrow !== symbol) o.number.narrow[currency] = narrow
  }
  if (tag === 'en' || tag === 'en-US') o.units = units()
  return o
}

// The English patterns of units, of one and of others, long, short and narrow.
const units = () => Object.fromEntries(Intl.supportedValuesOf('unit').map((unit) => [unit, ['long', 'short', 'narrow'].map((unitDisplay) =>
  [1, 2].map((n) => new Intl.NumberFormat('en', { style: 'unit', unit, unitDisplay }).formatToParts(n).map((p) => (p.type === 'integer' ? '0' : p.value)).join('')))]))

const digits = {}
for (const currency of Intl.supportedValuesOf('currency')) {
  const n = new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits
  if (n !== 2) digits[currency] = n
}
// The file: the length of the head in four bytes, the head, and for each language the gzipped JSON of its locales that differ.
const blocks = {}, all = {}
for (const tag of tags) {
  const options = new Intl.DateTimeFormat(tag).resolvedOptions()
  if (options.numberingSystem !== 'latn' || options.calendar !== 'gregory') continue
  const language = tag.split('-')[0], data = blocks[language] ??= []
  const text = JSON.stringify(of(tag))
  let i = data.indexOf(text)
  if (i < 0) i = data.push(text) - 1
  all[tag] = [language, i]
}
const packed = Object.entries(blocks).map(([language, data]) => [language, gzipSync(`[${data.join(',')}]`, { level: 9 })])
const head = Buffer.from(JSON.stringify({ cldr: process.versions.cldr, digits, tags: all, blocks: packed.map(([language, b]) => [language, b.length]) }))
const size = Buffer.alloc(4)
size.writeUInt32BE(head.length)
writeFileSync(new URL('../locales.bin', import.meta.url), Buffer.concat([size, head, ...packed.map(([, b]) => b)]))
