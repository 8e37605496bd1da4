// What locales, options and parts of Intl answer that are seldom asked for: what Node.js does, or an error that says that it is not supported here.
let nth, part, parts
const t = (f) => { if (nth++ % parts !== part) return; try { return f() } catch (e) { return e.message.includes('not supported here') ? 'unsupported' : e.name } }
const words = ['Z','z','a','A','ä','Ä','o','ö','é','e','É','ñ','n','ß','ss','å','ø','æ','Æ','č','c','ch','ll','co','cote','côte','10','2','1','i','I','ı','İ','ae','Ae','AE','œ','Œ','oe','OE','Oe','y','ü','ð','d','đ','þ','th','aa','Aa','ł','l','š','s','ž','w','v','x','w̌','ŵ','ő','ű','ğ','ş','gy','ny','dz','dž','lj','nj','q','k','ķ','ä̂','ſ','ĳ','ij','ŉ','ĸ','ə','ŋ','ŧ','ʒ','ǥ','ĺ','ŕ']
const L = ['bg','ca','cs','da','de','de-AT','de-CH','el','en','en-US','en-GB','en-CA','es','es-MX','et','eu','fi','fil','fr','fr-CA','fr-CH','ga','gl','hr','hu','id','is','it','ja','ko','lt','lv','ms','nb','nl','nn','no','pl','pt','pt-PT','ro','ru','sk','sl','sr','sr-Latn','sv','tr','uk','vi','zh','zh-Hant','ar','ar-EG','ar-AE','he','th','fa','hi','bn','mr','ne','my','ur','ps','ckb','km','sq','az','bs','mk','hy','ka','kk','uz','sw','af','cy','mt','am','ta','te','lo','fo','se']
// run answers every parts-th case of the first languages, the first after part others.
export const run = (one, of, languages) => {
  nth = 0; part = one; parts = of
  const out = {}
  for (const l of L.slice(0, languages)) {
    out['C ' + l] = t(() => { const c = new Intl.Collator(l).compare; return words.map((w) => words.map((v) => c(w, v) + 1).join('')).join(' ') })
    out['LC ' + l] = t(() => words.map((w) => words.map((v) => Math.sign(w.localeCompare(v, l)) + 1).join('')).join(' '))
    for (const o of [{ numeric: true }, { sensitivity: 'base' }, { sensitivity: 'accent' }, { sensitivity: 'case' }, { caseFirst: 'upper' }, { caseFirst: 'lower' }, { ignorePunctuation: true }, { usage: 'search' }, { collation: 'phonebk' }, { collation: 'trad' }, {collation: 'emoji'}, { caseFirst: 'upper', numeric: true }, { caseFirst: 'upper', sensitivity: 'base' }, { caseFirst: 'false' }])
      out['C ' + l + JSON.stringify(o)] = t(() => { const c = new Intl.Collator(l, o).compare; return words.map((w) => words.map((v) => c(w, v) + 1).join('')).join(' ') })
    for (const [name, f] of [['1', (c) => [c]], ['2', (c) => [c + 'a', c + 'z']]]) {
      for (const [sc, ranges] of [['latin', [[0x41, 0x5a], [0x61, 0x7a], [0xc0, 0xd6], [0xd8, 0xf6], [0xf8, 0x17f], [0x218, 0x21b], [0x1e80, 0x1e85], [0x1ea0, 0x1ef9]]], ['greek', [[0x386, 0x38a], [0x38c, 0x38c], [0x38e, 0x3a1], [0x3a3, 0x3ce]]], ['cyr', [[0x400, 0x45f], [0x490, 0x491]]]]) {
        const all = []
        for (const [x, y] of ranges) for (let c = x; c <= y; c++) all.push(...f(String.fromCodePoint(c)))
        const skip = { lv: /[yýÿŷỳỵỷỹ]/i, hu: /x^/, fi: /[đðÐĐ]/, 'fr-CA': /[ſđðÐĐ]/, da: /[őŐ]/ }[l]
        out['S' + name + ' ' + l + ' ' + sc] = t(() => all.filter((w) => !skip?.test(w)).sort(new Intl.Collator(l).compare).join())
      }
    }
    out['U ' + l] = t(() => words.map((w) => w.toLocaleUpperCase(l) + w.toLocaleLowerCase(l)).join())
    for (const k of ['co-phonebk', 'kn', 'kf-upper', 'nu-arab', 'ca-buddhist', 'nu-thai', 'hc-h12', 'ca-islamic', 'ks-level1', 'ka-shifted', 'fw-mon', 'rg-uszzzz', 'nu-native', 'cu-eur', 'tz-uslax', 'ca-iso8601', 'ca-japanese', 'nu-fullwide', 'co-search', 'co-standard'])
      out['X ' + l + k] = t(() => ['a', 'Ab', 'ä', '10', '9', 'ö', 'oe'].sort(new Intl.Collator(l + '-u-' + k).compare).join() + new Date(0).toLocaleString(l + '-u-' + k, { timeZone: 'UTC' }) + (1234.5).toLocaleString(l + '-u-' + k) + new Intl.PluralRules(l + '-u-' + k).select(2))
    for (const c of ['buddhist', 'chinese', 'islamic', 'islamic-civil', 'hebrew', 'japanese', 'persian', 'iso8601', 'gregorian', 'gregory', 'GREGORY', 'roc', 'x', ''])
      out['Cal ' + l + c] = t(() => new Date(0).toLocaleDateString(l, { timeZone: 'UTC', calendar: c }))
    for (const c of ['arab', 'thai', 'latn', 'LATN', 'deva', 'native', 'x', 'fullwide', 'hanidec', 'traditio'])
      out['NS ' + l + c] = t(() => new Date(0).toLocaleDateString(l, { timeZone: 'UTC', numberingSystem: c }) + (1234.5).toLocaleString(l, { numberingSystem: c }))
    out['D ' + l] = t(() => new Date(0).toLocaleString(l, { timeZone: 'UTC' }))
    out['N ' + l] = t(() => (-1234.5).toLocaleString(l))
    for (const o of [{ hour12: true }, { hour12: false }, { hourCycle: 'h11', hour: 'numeric' }, { hourCycle: 'h24', hour: 'numeric' }, { formatMatcher: 'basic', month: 'long' }, { localeMatcher: 'lookup' }, { dayPeriod: 'long' }, { dayPeriod: 'short', hour: 'numeric', hour12: true }, { era: 'short' }, { era: 'long', year: 'numeric', month: 'long' }, { timeZoneName: 'shortGeneric' }, { timeZoneName: 'longGeneric' }, { timeZoneName: 'long' }, { timeZoneName: 'longOffset' }, { timeZone: 'Europe/Paris', timeZoneName: 'short' }, { timeZone: 'Asia/Tokyo', timeZoneName: 'longGeneric' }, { timeZone: 'Europe/Paris', timeZoneName: 'shortGeneric' }, { fractionalSecondDigits: 2 }, { month: 'narrow' }, { weekday: 'narrow' }, { year: 'numeric', weekday: 'long' }, { dateStyle: 'full', timeStyle: 'full', timeZone: 'Asia/Kolkata' }, { year: '2-digit', month: 'short', day: '2-digit' }, { month: 'short', year: 'numeric' }, { month: '2-digit', day: '2-digit' }, {hour: '2-digit'}, {hour:'2-digit', hour12: true}, {minute: 'numeric'}, {minute: '2-digit'}, {second: 'numeric'}, {hour:'numeric',minute:'2-digit'}, {hour: 'numeric', dayPeriod: 'narrow'}])
      if (!('hour12' in o)) out['DO ' + l + JSON.stringify(o)] = t(() => new Intl.DateTimeFormat(l, { timeZone: 'UTC', ...o }).format(new Date(1750000000123)))
    for (const o of [{ style: 'unit', unit: 'liter' }, { style: 'unit', unit: 'kilometer-per-hour' }, { style: 'unit', unit: 'megabyte', unitDisplay: 'long' }, { style: 'unit', unit: 'foo' }, { style: 'currency', currency: 'USD', currencyDisplay: 'name' }, { style: 'currency', currency: 'XXX' }, { style: 'currency', currency: 'BTC' }, { style: 'currency', currency: 'RUB' }, { style: 'currency', currency: 'INR' }, { style: 'currency', currency: 'usd', notation: 'compact' }, { style: 'percent', signDisplay: 'always' }, { roundingPriority: 'lessPrecision', maximumFractionDigits: 1, maximumSignificantDigits: 3 }, { trailingZeroDisplay: 'stripIfInteger', minimumFractionDigits: 2 }, { signDisplay: 'negative' }, { notation: 'compact', style: 'percent' }, { useGrouping: 'false' }, { useGrouping: 'true' }, { useGrouping: '' }, { useGrouping: 'x' }, { useGrouping: null }, { minimumFractionDigits: 3, maximumFractionDigits: 2 }, { maximumFractionDigits: 101 }, { style: 'currency', currency: 'EUR', currencySign: 'accounting' }, { localeMatcher: 'x' }, { notation: 'compact', compactDisplay: 'x' }, { currency: 'E' }, {roundingMode: 'x'}])
      for (const n of [-1234567.891, 0.5, 12])
        out['NO ' + l + JSON.stringify(o) + n] = t(() => new Intl.NumberFormat(l, o).format(n))
    out['DR ' + l] = t(() => new Intl.DateTimeFormat(l).formatRange(0, 1e10))
    out['NR ' + l] = t(() => new Intl.NumberFormat(l).formatRange(1, 2))
    out['PR ' + l] = t(() => new Intl.PluralRules(l).selectRange(1, 2))
    out['P ' + l] = t(() => { const p = new Intl.PluralRules(l), o = new Intl.PluralRules(l, { type: 'ordinal' }); return [0,1,2,3,4,5,6,7,8,9,10,11,12,14,20,21,22,23,40,60,100,101,102,111,1e6,2e6,1.5,0.1,1e15].map((n) => p.select(n) + o.select(n)).join() })
    for (const n of [1.5, 3]) out['PN ' + l + n] = t(() => new Intl.PluralRules(l, { notation: 'compact' }).select(n * 1e6))
    out['Seg ' + l] = t(() => [...new Intl.Segmenter(l).segment('ab')].length)
    out['DN ' + l] = t(() => new Intl.DisplayNames(l, { type: 'region' }).of('US'))
    out['DU ' + l] = t(() => new Intl.DurationFormat(l).format({ hours: 1 }))
    out['R ' + l] = t(() => new Intl.RelativeTimeFormat(l).format(1, 'day') + new Intl.RelativeTimeFormat(l, { numberingSystem: 'arab' }).format(12, 'day'))
    out['LF ' + l] = t(() => new Intl.ListFormat(l).format(['a', 'b', 'c']))
  }
  for (const o of [{}, { localeMatcher: 'x' }, { numeric: 'x' }, { style: 'x' }, { style: 'narrow' }, { numberingSystem: 'arab' }, {style: 'short', numeric: 'auto'}]) out['RO ' + JSON.stringify(o)] = t(() => new Intl.RelativeTimeFormat('en', o).format(12345.678, 'days'))
  out.posix = t(() => (1234.5).toLocaleString('en-US-POSIX'))
  for (const k of ['calendar', 'collation', 'currency', 'numberingSystem', 'timeZone', 'unit', 'x']) out['SV ' + k] = t(() => Intl.supportedValuesOf(k).length)
  for (const [k, f] of Object.entries({
    loc1: () => new Intl.Locale('en', { region: 'GB' }).toString(), loc2: () => new Intl.Locale('en-Latn-US').maximize().toString(), loc3: () => new Intl.Locale('de-u-ca-buddhist').calendar, loc4: () => new Intl.Locale('de').getWeekInfo().firstDay,
    loc5: () => new Intl.Locale('de').minimize().toString(), loc6: () => new Intl.Locale('de-DE-u-nu-arab').numberingSystem, loc7: () => new Intl.Locale('ar').getTextInfo().direction, loc8: () => new Intl.Locale('en-u-hc-h23').hourCycle, loc9: () => new Intl.Locale('en-u-kn').numeric,
    loc10: () => new Intl.Locale('de').textInfo?.direction, loc11: () => new Intl.Locale('de').calendars?.join(), loc12: () => new Intl.Locale('en-u-kf-upper').caseFirst, loc13: () => new Intl.Locale('en-u-co-emoji').collation, loc14: () => new Intl.Locale('de-1996').variants, loc15: () => new Intl.Locale('de').weekInfo?.firstDay, loc16: () => new Intl.Locale('de').timeZones?.join(), loc17: () => new Intl.Locale('de').hourCycles?.join(),
    norm: () => 'ﬁ'.normalize('NFKC') + 'Å'.normalize('NFD').length,
    lc: () => ['a'.localeCompare('b', 'xx'), 'a'.localeCompare('b', ['xx', 'de'])].join(),
    rangeNaN: () => new Intl.DateTimeFormat('en').formatToParts(NaN),
    up: () => 'i'.toLocaleUpperCase('tr-TR') + 'i'.toLocaleUpperCase('az') + 'ì'.toLocaleLowerCase('lt') + 'Ì'.toLocaleLowerCase('lt') + 'ΑΣ'.toLocaleLowerCase('el') + 'ά'.toLocaleUpperCase('el') + 'ijs'.toLocaleUpperCase('nl') + 'x'.toLocaleUpperCase('xx') + 'եւ'.toLocaleUpperCase('hy'),
    tl: () => [1, new Date(0)].toLocaleString('en-US', { timeZone: 'UTC', minimumFractionDigits: 2 }), tl2: () => new Uint8Array([1, 200]).toLocaleString('de', { minimumFractionDigits: 1 }), obj: () => ({}).toLocaleString(),
  })) out[k] = t(f)
  return out
}
