// Intl, and the methods of the language that go by it. Names, patterns and signs are those of locales.bin; what is not there throws a
// RangeError that names it. Plural forms, the order of texts and time zones are worked out in Go.
(function (native, shared) {
  'use strict'
  const { parse, stringify, define } = shared
  const unsupported = (what) => new RangeError(`${what} is not supported here`)
  const slots = new WeakMap()
  const slot = (o, type) => {
    const s = slots.get(o)
    if (s?.type !== type) throw new TypeError(`this is not an Intl.${type}`)
    return s
  }

  // Locales.

  const tagOf = (tag) => {
    if (typeof tag !== 'string' && (tag === null || typeof tag !== 'object')) throw new TypeError('a locale must be a string')
    const found = native.tag(`${tag}`)
    if (found === undefined) throw new RangeError(`Incorrect locale information provided: ${tag}`)
    return found
  }
  const list = (locales) => {
    if (locales === undefined) return []
    if (typeof locales === 'string' || locales instanceof Locale) return [tagOf(locales)]
    if (locales === null) throw new TypeError('the locales must be a string or an array of strings')
    const seen = []
    for (const l of Array.from(Object(locales))) {
      const tag = tagOf(l)
      if (!seen.includes(tag)) seen.push(tag)
    }
    return seen
  }
  // extensions returns a tag without its extensions, and those of Unicode by their keys.
  const extensions = (tag) => {
    const [base, rest] = tag.split(/-u-/)
    const keys = {}
    let key
    for (const part of (rest ?? '').split('-')) {
      if (part.length === 2) keys[key = part] = ''
      else if (key && part.length > 2) keys[key] += (keys[key] && '-') + part
      else if (part.length === 1) break
    }
    return [base.replace(/-[a-wyz0-9]-.*|-x-.*/, ''), keys]
  }
  const resolve = (locales, type, most = 'en-US') => {
    const all = list(locales)
    if (!all.length) return [most, {}, most]
    for (const tag of all) {
      const [base, keys] = extensions(tag)
      if (keys.va === 'posix') break // the one variant that changes anything
      const found = native.locale(base)
      if (found !== undefined) return [found, keys, found]
    }
    throw unsupported(`Intl.${type}: the locale ${all.join(', ')}`)
  }
  const known = new Map()
  const dataOf = (tag) => {
    if (!known.has(tag)) known.set(tag, parse(native.localeData(tag)))
    return known.get(tag)
  }
  const supportedLocalesOf = (locales) => list(locales).filter((tag) => native.locale(extensions(tag)[0]) !== undefined)
  const option = (options, name, values, fallback) => {
    let v = options[name]
    if (v === undefined) return fallback
    v = `${v}`
    if (values && !values.includes(v)) throw new RangeError(`Value ${v} out of range for Intl options property ${name}`)
    return v
  }
  const count = (options, name, least, most, fallback) => {
    const v = options[name]
    if (v === undefined) return fallback
    const n = Number(v)
    if (!(n >= least && n <= most)) throw new RangeError(`${name} value is out of range.`)
    return Math.floor(n)
  }
  const objectOf = (options) => {
    if (options === null) throw new TypeError('the options must be an object')
    return options === undefined ? {} : Object(options)
  }
  const joined = (parts) => {
    let s = ''
    for (const p of parts) s += p.value
    return s
  }
  const intl = (type, make, methods) => {
    const C = { [type]: function (locales, options) {
      const self = new.target ? this : Object.create(C.prototype)
      slots.set(self, { type, ...make(locales, options) })
      if (options !== undefined) option(options, 'localeMatcher', ['lookup', 'best fit'])
      return self
    } }[type]
    define(C, { supportedLocalesOf })
    define(C.prototype, methods)
    Object.defineProperty(C.prototype, Symbol.toStringTag, { value: `Intl.${type}`, configurable: true })
    return C
  }
  const bound = (C, type, name, f) => Object.defineProperty(C.prototype, name, {
    get() { const s = slot(this, type); return s[name] ??= (...args) => f(s, ...args) }, configurable: true,
  })

  // Numbers. A number is worked on as its shortest decimal digits: [negative, digits, place of the point].

  const decimalOf = (v) => {
    if (typeof v === 'object' && v !== null) v = v[Symbol.toPrimitive]?.('number') ?? v.valueOf()
    if (typeof v === 'string') {
      const t = v.trim()
      if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(t)) v = Number(t)
      else return digitsOf(t)
    }
    if (typeof v === 'bigint') return digitsOf(`${v}`)
    v = Number(v)
    if (!Number.isFinite(v)) return { special: Number.isNaN(v) ? 'nan' : 'infinity', negative: v < 0 }
    return digitsOf(Object.is(v, -0) ? '-0' : `${v}`)
  }
  const digitsOf = (text) => {
    const [, sign, whole, fraction = '', e = '0'] = /^([+-]?)(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i.exec(text)
    const digits = (whole + fraction).replace(/^0+/, '')
    const lead = (whole + fraction).length - digits.length
    let point = whole.length - lead + Number(e)
    if (!digits) point = 0
    if (Math.abs(point) > 10000) throw new RangeError('the number has too many digits')
    return { negative: sign === '-', digits: digits.replace(/0+$/, ''), point }
  }
  const halves = { halfExpand: 1, halfCeil: 1, halfFloor: 1, halfTrunc: 1, halfEven: 1 }
  // rounded keeps the digits before a place.
  const rounded = (n, place, mode, increment = 1) => {
    let keep = n.digits.slice(0, Math.max(n.point + place, 0)).padEnd(Math.max(n.point + place, 0), '0')
    if (n.point + place < 0) keep = ''
    const rest = n.point + place < 0 ? '0'.repeat(Math.min(-(n.point + place), 1)) + n.digits : n.digits.slice(n.point + place)
    let up = false
    let last = BigInt(keep || '0')
    const step = BigInt(increment)
    const over = last % step
    const exact = over === 0n && /^0*$/.test(rest)
    if (!exact) {
      // twice what is left against the step: -1, 0 or 1
      const scale = 10n ** BigInt(rest.length)
      const left = over * scale + BigInt(rest || '0'), half = step * scale
      const side = 2n * left < half ? -1 : 2n * left > half ? 1 : 0
      const odd = ((last - over) / step) % 2n === 1n
      up = {
        ceil: !n.negative, floor: n.negative, expand: true, trunc: false, halfExpand: side >= 0, halfTrunc: side > 0, halfEven: side > 0 || (side === 0 && odd),
        halfCeil: side > 0 || (side === 0 && !n.negative), halfFloor: side > 0 || (side === 0 && n.negative),
      }[mode]
    }
    last = last - over + (up ? step : 0n)
    const text = last === 0n ? '' : `${last}`
    return { negative: n.negative, digits: text, point: text ? text.length - place : 0 }
  }
  // places returns the whole and the fraction of a number, with at least so many digits.
  const places = (n, least, fraction) => {
    const digits = n.digits.padEnd(Math.max(n.point, 0), '0')
    let whole = n.point > 0 ? digits.slice(0, n.point) : ''
    let part = n.point > 0 ? digits.slice(n.point) : n.digits ? '0'.repeat(-n.point) + n.digits : ''
    part = part.replace(/0+$/, '').padEnd(fraction, '0')
    whole = whole.padStart(Math.max(least, 1), '0')
    return [whole, part]
  }
  const roundNumber = (s, n) => {
    if (n.special) return n
    let r
    const bySignificant = () => n.digits ? rounded(n, s.maximumSignificantDigits - n.point, s.roundingMode) : n
    const byFraction = () => rounded(n, s.maximumFractionDigits, s.roundingMode, s.roundingIncrement)
    let fraction = s.minimumFractionDigits ?? 0
    if (s.rounding === 'significant') {
      r = bySignificant()
      fraction = Math.max(s.minimumSignificantDigits - (r.digits ? r.point : 1), 0)
    } else if (s.rounding === 'compact') { // two digits, but all of the whole
      r = n.point >= 2 ? rounded(n, 0, s.roundingMode) : n.digits ? rounded(n, 2 - n.point, s.roundingMode) : n
      fraction = 0
    } else {
      r = byFraction()
    }
    const [whole, part] = places(r, s.minimumIntegerDigits, fraction)
    return { ...r, whole, fraction: s.trailingZeroDisplay === 'stripIfInteger' && /^0*$/.test(part) ? '' : part }
  }
  const grouped = (s, whole, data, group) => {
    const [primary, secondary] = data.sizes
    const least = s.useGrouping === 'min2' ? 2 : s.useGrouping === 'always' ? 1 : data.least
    if (!s.useGrouping || !primary || whole.length < primary + least) return [{ type: 'integer', value: whole }]
    const parts = [{ type: 'integer', value: whole.slice(-primary) }]
    for (let rest = whole.slice(0, -primary); rest; rest = rest.slice(0, -secondary)) parts.unshift({ type: 'integer', value: rest.slice(-secondary) }, { type: 'group', value: group })
    return parts
  }
  const compactNames = { short: ['', 'K', 'M', 'B', 'T'], long: ['', ' thousand', ' million', ' billion', ' trillion'] }
  const numberParts = (s, v) => {
    const data = s.data.number
    let n = decimalOf(v)
    if (s.style === 'percent' && !n.special && n.digits) n = { ...n, point: n.point + 2 }
    let exponent = 0
    if (s.notation !== 'standard' && !n.special && n.digits) {
      const scale = (m) => (s.notation === 'scientific' ? m.point - 1 : s.notation === 'engineering' ? Math.floor((m.point - 1) / 3) * 3 : Math.min(Math.max(Math.floor((m.point - 1) / 3) * 3, 0), 12))
      exponent = scale(n)
      const r = roundNumber(s, { ...n, point: n.point - exponent })
      if (r.digits) exponent = scale({ point: r.point + exponent })
      n = { ...n, point: n.point - exponent }
    }
    const r = roundNumber(s, n)
    const zero = !r.special && !r.digits
    const parts = []
    if (r.special) parts.push({ type: r.special, value: data[r.special] })
    else {
      parts.push(...grouped(s, r.whole, data, s.style === 'currency' ? data.money || data.group : data.group))
      if (r.fraction) parts.push({ type: 'decimal', value: s.style === 'currency' ? data.moneyDecimal || data.decimal : data.decimal }, { type: 'fraction', value: r.fraction })
    }
    if (r.special) exponent = 0
    else if (s.notation === 'scientific' || s.notation === 'engineering') {
      parts.push({ type: 'exponentSeparator', value: data.exponent })
      if (exponent < 0) parts.push({ type: 'exponentMinusSign', value: data.minus })
      parts.push({ type: 'exponentInteger', value: `${Math.abs(exponent)}` })
    } else if (exponent) {
      const name = compactNames[s.compactDisplay][exponent / 3]
      if (name.startsWith(' ')) parts.push({ type: 'literal', value: ' ' })
      parts.push({ type: 'compact', value: name.trim() })
    }
    const negative = r.negative && r.special !== 'nan'
    const sign = {
      auto: negative ? '-' : '', always: negative ? '-' : '+', never: '', exceptZero: zero || r.special === 'nan' ? '' : negative ? '-' : '+', negative: negative && !zero ? '-' : '',
    }[s.signDisplay]
    s = r.special ? { ...s, unspaced: true } : s
    const one = whole1(r) && !parts.some((p) => p.type === 'compact')
    return [pattern(s, data, sign, one), parts]
  }
  const whole1 = (r) => r.whole === '1' && !r.fraction
  // pattern returns a text with 0 in the place of the number, ¤ of the currency, % of the percent sign, and - or + of the sign.
  const pattern = (s, data, sign, one) => {
    if (s.style === 'unit') return sign + s.data.units[s.unit][{ long: 0, short: 1, narrow: 2 }[s.unitDisplay]][one ? 0 : 1]
    const minus = sign === '-' ? 1 : 0
    if (s.style === 'percent') return sign === '+' ? '+' + data.percent[0] : data.percent[minus]
    if (s.style !== 'currency') return sign + '0'
    const text = s.currencyText
    const spaced = (data.currency[0][0][0].startsWith('¤') ? /\p{L}$/u : /^\p{L}/u).test(text) && !s.unspaced ? 1 : 0
    const found = sign === '+' ? data.plusCurrency[spaced] : data.currency[spaced][s.currencySign === 'accounting' ? 1 : 0][minus]
    const isCode = !data.symbols.EUR && !/^(de-(CH|LI)|es-(AR|CO|PE|PY|UY))$/.test(s.locale) // the pattern was that of the code EUR
    return spaced || !isCode ? found : found.replace('¤\u00a0', '¤')
  }
  const formatNumber = (s, v) => {
    const [text, number] = numberParts(s, v)
    const data = s.data.number
    const parts = []
    if (s.style === 'unit') {
      const [before, after] = text.replace(/^[-+]/, '').split('0')
      if (/^[-+]/.test(text)) parts.push({ type: text[0] === '-' ? 'minusSign' : 'plusSign', value: text[0] === '-' ? data.minus : data.plus })
      const around = (t) => { for (const [x] of t.matchAll(/ +|[^ ]+( +[^ ]+)*/g)) parts.push({ type: x.trim() ? 'unit' : 'literal', value: x }) }
      around(before)
      parts.push(...number)
      around(after)
      return parts
    }
    for (const c of text) {
      const type = { '¤': 'currency', '%': 'percentSign', '-': 'minusSign', '+': 'plusSign' }[c]
      if (c === '0') parts.push(...number)
      else if (type) parts.push({ type, value: { '¤': s.currencyText, '%': data.percentSign, '-': data.minus, '+': data.plus }[c] })
      else if (parts.at(-1)?.type === 'literal') parts.at(-1).value += c
      else parts.push({ type: 'literal', value: c })
    }
    return parts
  }
  // digitOptions reads how numbers are rounded.
  const digitOptions = (options, least, most, notation) => {
    const s = { minimumIntegerDigits: count(options, 'minimumIntegerDigits', 1, 21, 1) }
    const increment = count(options, 'roundingIncrement', 1, 5000, 1)
    if (![1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000].includes(increment)) throw new RangeError('roundingIncrement value is out of range.')
    s.roundingIncrement = increment
    s.roundingMode = option(options, 'roundingMode', ['ceil', 'floor', 'expand', 'trunc', ...Object.keys(halves)], 'halfExpand')
    if (option(options, 'roundingPriority', ['auto', 'morePrecision', 'lessPrecision'], 'auto') !== 'auto') throw unsupported('roundingPriority')
    s.trailingZeroDisplay = option(options, 'trailingZeroDisplay', ['auto', 'stripIfInteger'], 'auto')
    const { minimumFractionDigits: a, maximumFractionDigits: b, minimumSignificantDigits: c, maximumSignificantDigits: d } = options
    if (c !== undefined || d !== undefined) {
      s.rounding = 'significant'
      s.minimumSignificantDigits = count(options, 'minimumSignificantDigits', 1, 21, 1)
      s.maximumSignificantDigits = count(options, 'maximumSignificantDigits', s.minimumSignificantDigits, 21, 21)
    } else if (notation === 'compact' && a === undefined && b === undefined) {
      s.rounding = 'compact'
    } else {
      let min = count(options, 'minimumFractionDigits', 0, 100), max = count(options, 'maximumFractionDigits', 0, 100)
      if (increment !== 1) least = most = Math.max(least, 0)
      min ??= Math.min(least, max ?? least)
      max ??= Math.max(most, min)
      if (min > max) throw new RangeError('maximumFractionDigits value is out of range.')
      s.rounding = 'fraction'
      s.minimumFractionDigits = min
      s.maximumFractionDigits = max
    }
    return s
  }
  const NumberFormat = intl('NumberFormat', (locales, options) => {
    options = objectOf(options)
    const [locale, keys] = resolve(locales, 'NumberFormat')
    const data = dataOf(locale)
    const system = option(options, 'numberingSystem', undefined, keys.nu ?? 'latn')
    if (system !== 'latn') throw unsupported(`Intl.NumberFormat: the numbering system ${system}`)
    const style = option(options, 'style', ['decimal', 'percent', 'currency', 'unit'], 'decimal')
    const s = { locale, data, style }
    const unit = option(options, 'unit'), unitDisplay = option(options, 'unitDisplay', ['short', 'narrow', 'long'], 'short')
    if (style === 'unit') {
      if (unit === undefined) throw new TypeError('Unit is required with unit style.')
      if (!data.units?.[unit]) throw unsupported(`Intl.NumberFormat: the unit ${unit} in ${locale}`)
      Object.assign(s, { unit, unitDisplay })
    }
    const currency = option(options, 'currency')
    if (currency !== undefined && !/^[a-z]{3}$/i.test(currency)) throw new RangeError(`Invalid currency code : ${currency}`)
    const display = option(options, 'currencyDisplay', ['symbol', 'narrowSymbol', 'code', 'name'], 'symbol')
    const currencySign = option(options, 'currencySign', ['standard', 'accounting'], 'standard')
    if (style === 'currency') {
      if (currency === undefined) throw new TypeError('Currency code is required with currency style.')
      if (display === 'name') throw unsupported('Intl.NumberFormat: the currencyDisplay name')
      if (currencySign === 'accounting' && data.number.sizes[1] !== 3) throw unsupported(`Intl.NumberFormat: the currencySign accounting in ${locale}`)
      s.currency = currency.toUpperCase()
      if (s.currency === 'XXX') throw unsupported('Intl.NumberFormat: the currency XXX')
      s.currencyDisplay = display
      s.currencySign = currencySign
      const { symbols, narrow } = data.number
      s.currencyText = display === 'code' ? s.currency : display === 'narrowSymbol' ? narrow[s.currency] ?? symbols[s.currency] ?? s.currency : symbols[s.currency] ?? s.currency
    }
    s.notation = option(options, 'notation', ['standard', 'scientific', 'engineering', 'compact'], 'standard')
    const currencyDigits = s.currency && s.notation === 'standard' ? data.digits[s.currency] ?? 2 : undefined
    Object.assign(s, digitOptions(options, currencyDigits ?? 0, currencyDigits ?? (style === 'percent' ? 0 : 3), s.notation))
    if (s.notation === 'compact') {
      s.compactDisplay = option(options, 'compactDisplay', ['short', 'long'], 'short')
      if (!/^en\b/.test(locale) || style !== 'decimal' || /^en-(?!US)/.test(locale)) throw unsupported(`Intl.NumberFormat: the notation compact in ${locale} with the style ${style}`)
    }
    const g = options.useGrouping
    s.useGrouping = g === undefined || g === 'true' || g === 'false' ? (s.notation === 'compact' ? 'min2' : 'auto') : g === true ? 'always' : !g ? false : `${g}`
    if (s.useGrouping && !['auto', 'always', 'min2'].includes(s.useGrouping)) throw new RangeError(`Value ${g} out of range for Intl.NumberFormat options property useGrouping`)
    s.signDisplay = option(options, 'signDisplay', ['auto', 'never', 'always', 'exceptZero', 'negative'], 'auto')
    return s
  }, {
    formatToParts(v) { return formatNumber(slot(this, 'NumberFormat'), v) },
    formatRange() { throw unsupported('Intl.NumberFormat.formatRange') },
    formatRangeToParts() { throw unsupported('Intl.NumberFormat.formatRangeToParts') },
    resolvedOptions() {
      const s = slot(this, 'NumberFormat'), shown = { locale: s.locale, numberingSystem: 'latn' }
      for (const name of [
        'style', 'currency', 'currencyDisplay', 'currencySign', 'unit', 'unitDisplay', 'minimumIntegerDigits', 'minimumFractionDigits', 'maximumFractionDigits', 'minimumSignificantDigits', 'maximumSignificantDigits',
        'useGrouping', 'notation', 'compactDisplay', 'signDisplay', 'roundingIncrement', 'roundingMode',
      ]) if (s[name] !== undefined) shown[name] = s[name]
      return { ...shown, roundingPriority: s.rounding === 'compact' ? 'morePrecision' : 'auto', trailingZeroDisplay: s.trailingZeroDisplay }
    },
  })
  bound(NumberFormat, 'NumberFormat', 'format', (s, v) => joined(formatNumber(s, v)))

  // Dates.

  const fields = {
    weekday: ['narrow', 'short', 'long'], era: ['narrow', 'short', 'long'], year: ['2-digit', 'numeric'], month: ['2-digit', 'numeric', 'narrow', 'short', 'long'], day: ['2-digit', 'numeric'],
    dayPeriod: ['narrow', 'short', 'long'], hour: ['2-digit', 'numeric'], minute: ['2-digit', 'numeric'], second: ['2-digit', 'numeric'],
  }
  const zoneNames = ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric']
  const letter = (v) => ({ numeric: 'n', '2-digit': '2', short: 's', long: 'l', narrow: 'a' })[v] ?? '-'
  const styles = ['full', 'long', 'medium', 'short']
  const zoneOf = (name) => {
    const zone = native.zone(`${name}`)
    if (zone === undefined) throw new RangeError(`Invalid time zone specified: ${name}`)
    return zone
  }
  const dateSlot = (locales, options, required, defaults) => {
    options = objectOf(options)
    const [locale, keys] = resolve(locales, 'DateTimeFormat')
    const data = dataOf(locale)
    const calendar = option(options, 'calendar', undefined, keys.ca ?? 'gregory').toLowerCase()
    if (calendar !== 'gregory') throw unsupported(`Intl.DateTimeFormat: the calendar ${calendar}`)
    const system = option(options, 'numberingSystem', undefined, keys.nu ?? 'latn')
    if (system !== 'latn') throw unsupported(`Intl.DateTimeFormat: the numbering system ${system}`)
    const s = { locale, data, timeZone: options.timeZone === undefined ? 'UTC' : zoneOf(options.timeZone), shown: {} }
    let cycle = option(options, 'hourCycle', ['h11', 'h12', 'h23', 'h24'], ['h11', 'h12', 'h23', 'h24'].includes(keys.hc) ? keys.hc : undefined)
    if (options.hour12 !== undefined) cycle = options.hour12 ? (data.hours === 'h11' ? 'h11' : 'h12') : 'h23'
    for (const name of Object.keys(fields)) {
      const v = option(options, name, fields[name])
      if (v !== undefined) s.shown[name] = v
    }
    const fraction = count(options, 'fractionalSecondDigits', 1, 3)
    if (fraction !== undefined) s.shown.fractionalSecondDigits = fraction
    const zoneName = option(options, 'timeZoneName', zoneNames)
    s.dateStyle = option(options, 'dateStyle', styles)
    s.timeStyle = option(options, 'timeStyle', styles)
    const dates = ['weekday', 'year', 'month', 'day'], times = ['dayPeriod', 'hour', 'minute', 'second', 'fractionalSecondDigits']
    if (s.dateStyle || s.timeStyle) {
      if (Object.keys(s.shown).length || zoneName) throw new TypeError(`Can't set option ${zoneName ? 'timeZoneName' : Object.keys(s.shown)[0]} when ${s.dateStyle ? 'dateStyle' : 'timeStyle'} is used`)
      if ((required === 'date' && s.timeStyle) || (required === 'time' && s.dateStyle)) throw new TypeError(`Invalid option : ${s.timeStyle && required === 'date' ? 'timeStyle' : 'dateStyle'}`)
    } else if (![...(required !== 'time' ? dates : []), ...(required !== 'date' ? times : [])].some((n) => s.shown[n] !== undefined)) {
      if (defaults !== 'time') for (const n of ['year', 'month', 'day']) s.shown[n] = 'numeric'
      if (defaults !== 'date') for (const n of ['hour', 'minute', 'second']) s.shown[n] = 'numeric'
    }
    if (s.shown.dayPeriod) throw unsupported('Intl.DateTimeFormat: the option dayPeriod')
    if (s.shown.era && (!/^en(-US)?$/.test(locale) || !s.shown.year)) throw unsupported(`Intl.DateTimeFormat: the option era in ${locale}${s.shown.year ? '' : ' without year'}`)
    s.timeZoneName = zoneName
    if (s.shown.hour || s.timeStyle) s.hourCycle = cycle ?? data.hours
    s.twelve = s.hourCycle === 'h11' || s.hourCycle === 'h12'
    s.pattern = patternOf(s)
    return s
  }
  const patternOf = (s) => {
    const { data, shown } = s, c = s.twelve ? 'h12' : 'h23'
    const refuse = (what) => { throw unsupported(`Intl.DateTimeFormat: ${what} in ${s.locale}`) }
    let date, time, glue
    if (s.dateStyle) [date, glue] = data.styles[s.dateStyle]
    if (s.timeStyle) time = data.pool[data.styles[s.timeStyle][s.twelve ? 2 : 3]]
    if (s.dateStyle || s.timeStyle) date = date === undefined ? undefined : data.pool[date]
    else {
      const d = [shown.weekday, shown.year, shown.month, shown.day]
      if (d.some((v) => v)) {
        const found = data.dates[d.map(letter).join('')] ?? refuse(`the combination ${Object.keys(shown).join(', ')}`)
        date = data.pool[found[0]]
        if (shown.era) date = [...date, ['l', ' '], ['e', shown.era]]
        glue = found[1]
      }
      const t = [shown.hour, shown.minute, shown.second]
      if (t.some((v) => v)) {
        const [plain, zoned] = data.times[t.map(letter).join('') + (shown.hour ? c : '')] ?? refuse(`the combination ${Object.keys(shown).join(', ')}`)
        time = data.pool[s.timeZoneName ? zoned : plain] ?? refuse('this combination with timeZoneName')
      }
      if (shown.fractionalSecondDigits) {
        const at = time?.findIndex(([type]) => type === 's') ?? -1
        if (at < 0) refuse('fractionalSecondDigits without second')
        time = time.toSpliced(at + 1, 0, ['f', shown.fractionalSecondDigits])
      }
    }
    if (date === null || time === null) refuse('this style')
    if (s.timeZoneName && time) time = time.map(([type, x]) => [type, type === 'z' ? s.timeZoneName : x])
    else if (s.timeZoneName) {
      const before = data.beforeZone ?? refuse('timeZoneName'), [type, last] = date.at(-1)
      date = [...date, ['l', type === 'l' && before.startsWith(last) ? before.slice(last.length) : before], ['z', s.timeZoneName]]
    }
    if (time?.some(([type]) => type === 'p') && /^zh-(Hant|TW|HK|MO)/.test(s.locale)) refuse('an hour of twelve')
    if (!date || !time) return merged(date ?? time)
    if (/^eu\b/.test(s.locale)) refuse('a date with a time') // which is in parentheses there
    if (glue === null || glue === undefined) refuse('a date with a time in this combination')
    const [before, between, first] = data.pool[glue]
    const both = first ? [...time, ['l', between], ...date] : [...date, ['l', between], ...time]
    return merged(before ? [['l', before], ...both] : both)
  }
  const merged = (pattern) => {
    const all = []
    for (const [type, x] of pattern) {
      if (type === 'l' && all.at(-1)?.[0] === 'l') all[all.length - 1] = ['l', all.at(-1)[1] + x]
      else if (type !== 'l' || x) all.push([type, x])
    }
    return all
  }
  const american = { EST: 1, EDT: 1, CST: 1, CDT: 1, MST: 1, MDT: 1, PST: 1, PDT: 1, AKST: 1, AKDT: 1, HST: 1, HDT: 1 }
  const longNames = {
    UTC: 'Coordinated Universal Time', GMT: 'Greenwich Mean Time', EST: 'Eastern Standard Time', EDT: 'Eastern Daylight Time', CST: 'Central Standard Time', CDT: 'Central Daylight Time', MST: 'Mountain Standard Time',
    MDT: 'Mountain Daylight Time', PST: 'Pacific Standard Time', PDT: 'Pacific Daylight Time', AKST: 'Alaska Standard Time', AKDT: 'Alaska Daylight Time', HST: 'Hawaii-Aleutian Standard Time', HDT: 'Hawaii-Aleutian Daylight Time',
    WET: 'Western European Standard Time', WEST: 'Western European Summer Time', CET: 'Central European Standard Time', CEST: 'Central European Summer Time', EET: 'Eastern European Standard Time', EEST: 'Eastern European Summer Time',
    JST: 'Japan Standard Time', AEST: 'Australian Eastern Standard Time', AEDT: 'Australian Eastern Daylight Time', ACST: 'Australian Central Standard Time', ACDT: 'Australian Central Daylight Time', AWST: 'Australian Western Standard Time',
    NZST: 'New Zealand Standard Time', NZDT: 'New Zealand Daylight Time', NST: 'Newfoundland Standard Time', NDT: 'Newfoundland Daylight Time', AST: 'Atlantic Standard Time', ADT: 'Atlantic Daylight Time',
  }
  const ownNames = {
    'Europe/London': { BST: 'British Summer Time' }, 'Europe/Dublin': { IST: 'Irish Standard Time' }, 'Asia/Kolkata': { IST: 'India Standard Time' }, 'Asia/Calcutta': { IST: 'India Standard Time' }, 'Asia/Jerusalem': { IST: 'Israel Standard Time', IDT: 'Israel Daylight Time' },
    'Asia/Shanghai': { CST: 'China Standard Time' }, 'Asia/Seoul': { KST: 'Korean Standard Time' }, 'Asia/Hong_Kong': { HKT: 'Hong Kong Standard Time' }, 'Asia/Taipei': { CST: 'Taipei Standard Time' }, 'Asia/Manila': {}, 'America/Havana': {}, 'Asia/Macau': {},
    'Europe/Moscow': { MSK: 'Moscow Standard Time' }, 'Africa/Johannesburg': { SAST: 'South Africa Standard Time' }, 'Africa/Lagos': { WAT: 'West Africa Standard Time' }, 'Africa/Nairobi': { EAT: 'East Africa Time' }, 'Asia/Singapore': { '+08': 'Singapore Standard Time' },
    'America/Sao_Paulo': { '-03': 'Brasilia Standard Time' }, 'America/Argentina/Buenos_Aires': { '-03': 'Argentina Standard Time' }, 'Asia/Dubai': { '+04': 'Gulf Standard Time' }, 'Asia/Karachi': { PKT: 'Pakistan Standard Time' }, 'Asia/Tehran': {},
    'Asia/Kathmandu': { '+0545': 'Nepal Time' }, 'Asia/Katmandu': { '+0545': 'Nepal Time' }, 'Asia/Dhaka': { '+06': 'Bangladesh Standard Time' }, 'Asia/Bangkok': { '+07': 'Indochina Time' }, 'Asia/Jakarta': { WIB: 'Western Indonesia Time' }, 'Australia/Lord_Howe': { '+1030': 'Lord Howe Standard Time', '+11': 'Lord Howe Daylight Time' },
  }
  const two = (n) => `${n}`.padStart(2, '0')
  const offsetName = (s, offset, long) => {
    const { data } = s
    if (!offset && (long || !/\d/.test(data.gmt))) return data.gmt
    if (!data.offset.includes('{}') || (offset < 0 && !/^en\b/.test(s.locale))) throw unsupported(`Intl.DateTimeFormat: this timeZoneName in ${s.locale}`)
    const a = Math.abs(offset), h = Math.floor(a / 3600), m = Math.floor(a / 60) % 60, sec = a % 60
    const text = long ? `${two(h)}:${two(m)}` : h + (m ? `:${two(m)}` : '')
    return data.offset.replace('{}', (offset < 0 ? '-' : '+') + text + (sec ? `:${two(sec)}` : ''))
  }
  const zoneName = (s, kind, t, offset) => {
    const refuse = () => unsupported(`Intl.DateTimeFormat: the timeZoneName ${kind} of ${s.timeZone} in ${s.locale}`)
    if (kind === 'shortOffset' || kind === 'longOffset') return offsetName(s, offset, kind === 'longOffset')
    const abbreviation = native.zoneAbbreviation(s.timeZone, t)
    const english = /^en(-US)?$/.test(s.locale)
    if (kind === 'short') {
      if (s.timeZone === 'UTC') return 'UTC'
      if (!english) throw refuse()
      return american[abbreviation] && /^(America|Pacific|US)\//.test(s.timeZone) && !ownNames[s.timeZone] ? abbreviation : offsetName(s, offset, false)
    }
    const own = ownNames[s.timeZone]
    const name = kind === 'long' && /^en\b/.test(s.locale) ? (own ? own[abbreviation] ?? (abbreviation === 'GMT' ? longNames.GMT : undefined) : longNames[abbreviation]) : undefined
    if (!name) throw refuse()
    return name
  }
  const eras = { short: ['AD', 'BC'], long: ['Anno Domini', 'Before Christ'], narrow: ['A', 'B'] }
  const dateText = (s, v) => joined(dateParts(s, v)).replaceAll('\u202f', ' ') // as V8 has it, so that Date reads it
  const dateParts = (s, v) => {
    const t = v === undefined ? Date.now() : Math.trunc(Number(v))
    if (!(Math.abs(t) <= 8.64e15)) throw new RangeError('Invalid time value')
    const offset = native.offset(s.timeZone, t)
    const d = new Date(t + offset * 1000)
    const year = d.getUTCFullYear() > 0 ? d.getUTCFullYear() : 1 - d.getUTCFullYear()
    const hour = d.getUTCHours()
    const padded = (n, size) => `${n}`.padStart(size, '0')
    return s.pattern.map(([type, x]) => {
      switch (type) {
        case 'l': return { type: 'literal', value: x }
        case 'y': return { type: 'year', value: x === 2 ? two(year % 100) : `${year}` }
        case 'm': return { type: 'month', value: padded(d.getUTCMonth() + 1, x) }
        case 'M': return { type: 'month', value: s.data.names[x][d.getUTCMonth()] }
        case 'e': return { type: 'era', value: eras[x][d.getUTCFullYear() > 0 ? 0 : 1] }
        case 'd': return { type: 'day', value: padded(d.getUTCDate(), x) }
        case 'w': return { type: 'weekday', value: s.data.names[x][d.getUTCDay()] }
        case 'h': return { type: 'hour', value: padded({ h11: hour % 12, h12: hour % 12 || 12, h23: hour, h24: hour || 24 }[s.hourCycle], x) }
        case 'i': return { type: 'minute', value: padded(d.getUTCMinutes(), x) }
        case 's': return { type: 'second', value: padded(d.getUTCSeconds(), x) }
        case 'f': return { type: 'fractionalSecond', value: padded(d.getUTCMilliseconds(), 3).slice(0, x) }
        case 'p': return { type: 'dayPeriod', value: s.data.names[x][hour < 12 ? 0 : 1] }
        default: return { type: 'timeZoneName', value: zoneName(s, x, t, offset) }
      }
    }).flatMap((p) => (p.type === 'fractionalSecond' ? [{ type: 'literal', value: s.data.number.decimal }, p] : [p]))
  }
  const DateTimeFormat = intl('DateTimeFormat', (locales, options) => dateSlot(locales, options, 'any', 'date'), {
    formatToParts(v) { return dateParts(slot(this, 'DateTimeFormat'), v) },
    formatRange() { throw unsupported('Intl.DateTimeFormat.formatRange') },
    formatRangeToParts() { throw unsupported('Intl.DateTimeFormat.formatRangeToParts') },
    resolvedOptions() {
      const { locale, timeZone, hourCycle, twelve, shown, timeZoneName, dateStyle, timeStyle } = slot(this, 'DateTimeFormat')
      return {
        locale, calendar: 'gregory', numberingSystem: 'latn', timeZone, ...(hourCycle && { hourCycle, hour12: twelve }), ...shown, ...(timeZoneName && { timeZoneName }), ...(dateStyle && { dateStyle }),
        ...(timeStyle && { timeStyle }),
      }
    },
  })
  bound(DateTimeFormat, 'DateTimeFormat', 'format', dateText)

  // Order, plurals, and the smaller ones, which are English.

  const collation = (locales, options) => {
    options = objectOf(options)
    const [locale, keys] = resolve(locales, 'Collator')
    const s = {
      locale, usage: option(options, 'usage', ['sort', 'search'], 'sort'), sensitivity: option(options, 'sensitivity', ['base', 'accent', 'case', 'variant'], 'variant'),
      ignorePunctuation: Boolean(options.ignorePunctuation), collation: option(options, 'collation', undefined, keys.co ?? 'default'),
      numeric: options.numeric === undefined ? keys.kn === '' || keys.kn === 'true' : Boolean(options.numeric), caseFirst: option(options, 'caseFirst', ['upper', 'lower', 'false'], keys.kf ?? (/^da\b/.test(locale) ? 'upper' : 'false')),
    }
    for (const [name, value] of [['collation', 'default'], ['ignorePunctuation', false]]) if (s[name] !== value) throw unsupported(`Intl.Collator: ${name} ${s[name]}`)
    if (s.sensitivity === 'accent' && /^n[bno]\b/.test(locale)) throw unsupported(`Intl.Collator: sensitivity accent in ${locale}`) // of aa and å
    if (s.sensitivity === 'case') throw unsupported('Intl.Collator: sensitivity case')
    if (/^lv\b/.test(locale)) throw unsupported(`Intl.Collator: the locale ${locale}`)
    if (s.usage === 'search') throw unsupported('Intl.Collator: usage search')
    s.key = `${s.sensitivity}${s.numeric ? ' numeric' : ''}${s.caseFirst === 'upper' ? ' upper' : ''}`
    return s
  }
  // What of a locale's order is not known, as a regular expression of two texts.
  const unordered = {
    da: /[œŒęĘ]/, et: /[ʌɅ]/, fi: /[țŋŧđðǥʒ]/i, 'fr-CA': /[ſđĐðÐѓЃ]/, hu: /dž/i, is: /[ắấếố]/i, pl: /ố/i, sr: /[йії]/i, vi: /[ĕĭŏŭ]/i, zh: /[\u1ea0-\u1ef9]/,
  }
  const upperFirst = /[ςıİſ]/
  const order = (s, a, b) => {
    const both = a + b
    const refused = (unordered[s.locale] ?? unordered[s.locale.split('-')[0]])?.exec(both) ?? (s.caseFirst === 'upper' ? upperFirst.exec(both) : null)
    if (refused) throw unsupported(`Intl.Collator: the order of ${refused[0]} in ${s.locale}`)
    return native.compare(s.locale, s.key, a, b)
  }
  const Collator = intl('Collator', collation, {
    resolvedOptions() {
      const { type, key, compare, ...s } = slot(this, 'Collator')
      return s
    },
  })
  bound(Collator, 'Collator', 'compare', (s, a, b) => order(s, `${a}`, `${b}`))

  const PluralRules = intl('PluralRules', (locales, options) => {
    options = objectOf(options)
    const [locale] = resolve(locales, 'PluralRules')
    return { locale, kind: option(options, 'type', ['cardinal', 'ordinal'], 'cardinal'), data: dataOf(locale), ...digitOptions(options, 0, 3, 'standard') }
  }, {
    select(v) {
      const s = slot(this, 'PluralRules'), n = roundNumber(s, decimalOf(Number(v)))
      return n.special ? 'other' : native.plural(s.locale, s.kind === 'ordinal', n.whole, n.fraction)
    },
    selectRange() { throw unsupported('Intl.PluralRules.selectRange') },
    resolvedOptions() {
      const { locale, kind, minimumIntegerDigits, minimumFractionDigits, maximumFractionDigits, minimumSignificantDigits, maximumSignificantDigits } = slot(this, 'PluralRules')
      const significant = maximumSignificantDigits === undefined ? { minimumFractionDigits, maximumFractionDigits } : { minimumSignificantDigits, maximumSignificantDigits }
      return { locale, type: kind, minimumIntegerDigits, ...significant, pluralCategories: native.pluralCategories(locale, kind === 'ordinal').split(' ') }
    },
  })

  const english = (locales, type) => {
    const [locale] = resolve(locales, type)
    if (!/^en(-US)?$/.test(locale)) throw unsupported(`Intl.${type}: the locale ${locale}`)
    return locale
  }
  const units = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year']
  const shortUnits = { second: 'sec.', minute: 'min.', hour: 'hr.', day: 'day', week: 'wk.', month: 'mo.', quarter: 'qtr.', year: 'yr.' }
  const special = { day: { 0: 'today', 1: 'tomorrow', '-1': 'yesterday' }, second: { 0: 'now' } }
  const relative = (s, value, unit) => {
    value = Number(value)
    unit = `${unit}`.replace(/s$/, '')
    if (!units.includes(unit)) throw new RangeError(`Invalid unit argument for format() '${unit}'`)
    if (!Number.isFinite(value)) throw new RangeError('Invalid number value')
    if (s.style === 'narrow') throw unsupported('Intl.RelativeTimeFormat: the style narrow')
    const past = value < 0 || Object.is(value, -0)
    if (s.numeric === 'auto') {
      const short = s.style === 'long' || unit === 'hour' || unit === 'minute' ? unit : shortUnits[unit]
      const word = special[unit]?.[value] ?? (special[unit] || Math.abs(value) > 1 || value % 1 ? undefined : `${value < 0 ? 'last' : value ? 'next' : 'this'} ${short}`)
      if (word && !((unit === 'hour' || unit === 'minute') && value)) return [{ type: 'literal', value: word }]
    }
    const number = formatNumber(s.number, Math.abs(value)).map((p) => ({ ...p, unit }))
    const one = Math.abs(value) === 1
    const name = s.style === 'long' ? unit + (one ? '' : 's') : unit === 'day' ? (one ? 'day' : 'days') : unit === 'quarter' ? (one ? 'qtr.' : 'qtrs.') : shortUnits[unit]
    return past ? [...number, { type: 'literal', value: ` ${name} ago` }] : [{ type: 'literal', value: 'in ' }, ...number, { type: 'literal', value: ` ${name}` }]
  }
  const RelativeTimeFormat = intl('RelativeTimeFormat', (locales, options) => {
    options = objectOf(options)
    const locale = english(locales, 'RelativeTimeFormat'), system = option(options, 'numberingSystem', undefined, 'latn')
    if (system !== 'latn') throw unsupported(`Intl.RelativeTimeFormat: the numbering system ${system}`)
    return { locale, style: option(options, 'style', ['long', 'short', 'narrow'], 'long'), numeric: option(options, 'numeric', ['always', 'auto'], 'always'), number: slots.get(new NumberFormat(locale)) }
  }, {
    format(value, unit) { return joined(relative(slot(this, 'RelativeTimeFormat'), value, unit)) },
    formatToParts(value, unit) { return relative(slot(this, 'RelativeTimeFormat'), value, unit) },
    resolvedOptions() {
      const { locale, style, numeric } = slot(this, 'RelativeTimeFormat')
      return { locale, style, numeric, numberingSystem: 'latn' }
    },
  })
  const listed = (s, values) => {
    const all = Array.from(values, (v) => {
      if (typeof v !== 'string') throw new TypeError('Iterable yielded a value which is not a string')
      return { type: 'element', value: v }
    })
    const word = s.kind === 'unit' ? '' : s.kind === 'disjunction' ? 'or' : s.style === 'long' ? 'and' : s.style === 'short' ? '&' : ''
    const comma = s.kind === 'unit' && s.style === 'narrow' ? ' ' : ', '
    return all.flatMap((part, i) => {
      if (!i) return [part]
      const last = i === all.length - 1
      return [{ type: 'literal', value: !last || !word ? comma : all.length === 2 ? ` ${word} ` : `, ${word} ` }, part]
    })
  }
  const ListFormat = intl('ListFormat', (locales, options) => {
    options = objectOf(options)
    return { locale: english(locales, 'ListFormat'), kind: option(options, 'type', ['conjunction', 'disjunction', 'unit'], 'conjunction'), style: option(options, 'style', ['long', 'short', 'narrow'], 'long') }
  }, {
    format(values) { return joined(listed(slot(this, 'ListFormat'), values)) },
    formatToParts(values) { return listed(slot(this, 'ListFormat'), values) },
    resolvedOptions() {
      const { locale, kind, style } = slot(this, 'ListFormat')
      return { locale, type: kind, style }
    },
  })
  class Locale {
    #tag
    constructor(tag, options) {
      if (options !== undefined && Object.keys(Object(options)).length) throw unsupported('Intl.Locale: options')
      this.#tag = tagOf(tag)
    }
    get baseName() { return extensions(this.#tag)[0] }
    get language() { return this.baseName.split('-')[0] }
    get script() { return this.baseName.split('-').slice(1).find((p) => p.length === 4 && !/^\d/.test(p)) }
    get region() { return this.baseName.split('-').slice(1).find((p) => /^([A-Z]{2}|\d{3})$/.test(p)) }
    get #keys() { return extensions(this.#tag)[1] }
    get calendar() { return this.#keys.ca }
    get collation() { return this.#keys.co }
    get hourCycle() { return this.#keys.hc }
    get caseFirst() { return this.#keys.kf }
    get numeric() { return ['', 'true'].includes(this.#keys.kn) }
    get numberingSystem() { return this.#keys.nu }
    toString() { return this.#tag }
  }
  for (const name of ['maximize', 'minimize', 'getCalendars', 'getCollations', 'getHourCycles', 'getNumberingSystems', 'getTextInfo', 'getTimeZones', 'getWeekInfo']) {
    define(Locale.prototype, { [name]() { throw unsupported(`Intl.Locale.${name}`) } })
  }
  for (const name of ['calendars', 'collations', 'hourCycles', 'numberingSystems', 'textInfo', 'timeZones', 'weekInfo']) {
    Object.defineProperty(Locale.prototype, name, { get() { throw unsupported(`Intl.Locale.${name}`) }, configurable: true })
  }
  const missing = {}
  for (const type of ['DisplayNames', 'DurationFormat', 'Segmenter']) missing[type] = { [type]: function () { throw unsupported(`Intl.${type}`) } }[type]

  // The methods of the language.

  const made = new Map() // what their last options have made
  const once = (key, locales, options, make) => {
    if (options !== undefined || (typeof locales !== 'string' && locales !== undefined)) return make()
    key += locales
    if (!made.has(key)) made.set(key, make())
    return made.get(key)
  }
  const methods = {
    number: (v, locales, options) => joined(formatNumber(once('number ', locales, options, () => slots.get(new NumberFormat(locales, options))), v)),
    date: (v, locales, options, required, defaults) => (Number.isNaN(Number(v)) ? 'Invalid Date' : dateText(once(`${required} ${defaults} `, locales, options, () => dateSlot(locales, options, required, defaults)), v)),
    compare: (a, b, locales, options) => {
      const s = once('compare ', locales, options, () => collation(locales, options))
      return order(s, a, b)
    },
    fold: (text, locales, upper) => {
      const tag = list(locales)[0] ?? 'en'
      return native.fold(tag, text, upper)
    },
  }
  const Intl = {}
  define(Intl, {
    DateTimeFormat, NumberFormat, Collator, PluralRules, RelativeTimeFormat, ListFormat, Locale, ...missing, getCanonicalLocales: (locales) => list(locales),
    supportedValuesOf: (key) => { throw unsupported(`Intl.supportedValuesOf(${key})`) },
  })
  Object.defineProperty(Intl, Symbol.toStringTag, { value: 'Intl', configurable: true })
  return { Intl, methods }
})
