// The globals that every script finds beside those of the language, and the functions by which the process drives an
// invocation. It runs once, when a process starts: its state is copied for each invocation.
//
// What it needs of the language it takes before a script can change it.
(function (native, hostPrelude) {
  'use strict'
  const { parse, stringify } = JSON
  const { apply, ownKeys } = Reflect
  const isArray = Array.isArray
  const define = (target, properties) => {
    for (const name of Object.keys(properties)) {
      Object.defineProperty(target, name, { value: properties[name], writable: true, configurable: true, enumerable: false })
    }
  }

  // Bytes.

  const bytesOf = (data, what) => {
    if (typeof data === 'string') return data
    if (data instanceof ArrayBuffer) return new Uint8Array(data)
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    throw new TypeError(`${what} must be a string, an ArrayBuffer or a view of one`)
  }
  // taking returns a function that throws if it gets more arguments than it knows.
  const taking = (most, name, f) => (...args) => {
    if (args.length > most) throw new TypeError(`${name} takes at most ${most} argument${most === 1 ? '' : 's'}, and got ${args.length}`)
    return f(...args)
  }
  const checkForm = (as) => { if (as !== 'text' && as !== 'bytes') throw new TypeError(`the form must be "text" or "bytes", not ${stringify(as)}`) }
  const base64Encode = taking(1, 'base64Encode', (data) => native.encode(bytesOf(data, 'data'), 'base64'))
  const base64UrlEncode = taking(1, 'base64UrlEncode', (data) => native.encode(bytesOf(data, 'data'), 'base64url'))
  const decoder = (encoding) => (text, as = 'text') => {
    checkForm(as)
    const buffer = native.decode(`${text}`, encoding)
    return as === 'bytes' ? new Uint8Array(buffer) : native.text(new Uint8Array(buffer), 'utf-8', false, true)
  }
  const base64Decode = taking(2, 'base64Decode', decoder('base64')), base64UrlDecode = taking(2, 'base64UrlDecode', decoder('base64url'))

  class TextEncoder {
    get encoding() { return 'utf-8' }
    encode(text = '') { return new Uint8Array(native.utf8(`${text}`)) }
    encodeInto(text, target) {
      let read = 0, written = 0
      for (const c of `${text}`) {
        const b = new Uint8Array(native.utf8(c))
        if (written + b.length > target.length) break
        target.set(b, written)
        read += c.length
        written += b.length
      }
      return { read, written }
    }
  }

  // whole returns how many of the bytes of a stream are whole characters.
  const whole = (b, encoding) => {
    const n = b.length
    if (encoding === 'utf-8') {
      for (let i = 1; i <= Math.min(n, 3); i++) {
        const c = b[n - i]
        if ((c & 0xc0) !== 0x80) return (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1) > i ? n - i : n
      }
      return n
    }
    const even = n - n % 2
    return even && (b[encoding === 'utf-16le' ? even - 1 : even - 2] & 0xfc) === 0xd8 ? even - 2 : even
  }
  class TextDecoder {
    #encoding; #fatal; #ignoreBOM
    #rest = null // of a stream
    #begun = false
    constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
      this.#encoding = native.encodingName(`${label}`)
      if (!this.#encoding) throw new RangeError(`the encoding ${label} is not supported`)
      this.#fatal = !!fatal
      this.#ignoreBOM = !!ignoreBOM
    }
    get encoding() { return this.#encoding }
    get fatal() { return this.#fatal }
    get ignoreBOM() { return this.#ignoreBOM }
    decode(data, options) {
      const stream = Boolean(options?.stream)
      if (typeof data === 'string') throw new TypeError('TextDecoder decodes an ArrayBuffer or a view of one')
      let b = data === undefined ? new Uint8Array(0) : bytesOf(data, 'data')
      if (!stream && !this.#rest && !this.#begun) return native.text(b, this.#encoding, this.#fatal, this.#ignoreBOM)
      if (!/^utf-/.test(this.#encoding)) throw new TypeError('streams are decoded in UTF-8 and UTF-16 only: decode all bytes at once')
      if (this.#rest) {
        const both = new Uint8Array(this.#rest.length + b.length)
        both.set(this.#rest)
        both.set(b, this.#rest.length)
        b = both
      }
      const end = stream ? whole(b, this.#encoding) : b.length
      const text = native.text(b.subarray(0, end), this.#encoding, this.#fatal, this.#ignoreBOM || this.#begun)
      this.#rest = stream && end < b.length ? b.slice(end) : null
      this.#begun = stream && (this.#begun || end > 0)
      return text
    }
  }

  // Logs.

  const inspect = (v, depth, seen) => {
    switch (typeof v) {
      case 'string': return depth === 0 ? v : stringify(v)
      case 'bigint': return `${v}n`
      case 'symbol': return v.toString()
      case 'function': return `[function ${v.name || 'anonymous'}]`
      case 'object': break
      default: return `${v}`
    }
    if (v === null) return 'null'
    const type = native.classOf(v)
    if (type === 'Error') return errorText(v)
    if (type === 'Date') return isNaN(v) ? 'Invalid Date' : v.toISOString()
    if (type === 'RegExp') return `${v}`
    if (type === 'Promise') return '[promise]'
    if (type === 'Proxy') return '[proxy]'
    if (seen.includes(v)) return '[circular]'
    if (depth > 4) return isArray(v) ? '[array]' : '[object]'
    const within = [...seen, v]
    const item = (x) => inspect(x, depth + 1, within)
    const more = (n) => (n > 100 ? [`… ${n - 100} more`] : [])
    if (isArray(v)) return `[${[...v.slice(0, 100).map(item), ...more(v.length)].join(', ')}]`
    if (type === 'View' || type === 'ArrayBuffer') return `[${v.constructor?.name ?? type} of ${v.byteLength} bytes]`
    if (type === 'Map') return `Map {${[...[...v].slice(0, 100).map(([k, x]) => `${item(k)} => ${item(x)}`), ...more(v.size)].join(', ')}}`
    if (type === 'Set') return `Set {${[...[...v].slice(0, 100).map(item), ...more(v.size)].join(', ')}}`
    const keys = Object.keys(v)
    const name = (k) => (/^[A-Za-z_$][\w$]*$/.test(k) ? k : stringify(k))
    return `{${[...keys.slice(0, 100).map((k) => `${name(k)}: ${item(v[k])}`), ...more(keys.length)].join(', ')}}`
  }
  const errorText = (e) => {
    const head = `${e.name}: ${e.message}`
    const cause = e.cause === undefined ? '' : `\nCause: ${inspect(e.cause, 1, [e])}`
    return e.stack ? `${head}\n${native.trimEnd(`${e.stack}`)}${cause}` : head + cause
  }
  const format = (args) => {
    const parts = []
    for (const v of args) {
      try {
        parts.push(inspect(v, 0, []))
      } catch {
        parts.push('[unprintable]')
      }
    }
    return parts.join(' ')
  }
  const levels = { debug: 0, info: 1, warn: 2, error: 3 }
  const line = (level) => (...args) => { native.log(levels[level], format(args)) }
  const log = line('info')
  define(log, { debug: line('debug'), info: log, warn: line('warn'), error: line('error') })

  const counts = new Map(), times = new Map()
  const console = {
    log, info: log, debug: log.debug, trace: log.debug, dir: (v) => log(v), dirxml: log, table: (v) => log(v), warn: log.warn, error: log.error,
    assert: (ok, ...args) => { if (!ok) log.error('Assertion failed', ...args) },
    count: (label = 'default') => { counts.set(label, (counts.get(label) ?? 0) + 1); log(`${label}: ${counts.get(label)}`) },
    countReset: (label = 'default') => { counts.delete(label) },
    time: (label = 'default') => { times.set(label, native.now()) },
    timeLog: (label = 'default', ...args) => { if (times.has(label)) log(`${label}: ${(native.now() - times.get(label)).toFixed(3)} ms`, ...args) },
    timeEnd: (label = 'default') => { console.timeLog(label); times.delete(label) },
    group: log, groupCollapsed: log, groupEnd: () => {}, clear: () => {},
  }

  // Timers. The process waits for next() milliseconds when there is nothing else to do, and calls fire().

  const timers = new Map()
  let lastTimer = 0
  const timer = (repeat) => (f, delay = 0, ...args) => {
    if (typeof f !== 'function') throw new TypeError('the first argument of a timer must be a function')
    delay = Math.max(Number(delay) || 0, 1)
    timers.set(++lastTimer, { at: native.now() + delay, delay: repeat ? delay : 0, f, args })
    return lastTimer
  }
  const clearTimer = (id) => { timers.delete(id) }
  const next = () => {
    let at = Infinity
    for (const t of timers.values()) if (t.at < at) at = t.at
    return at === Infinity ? -1 : Math.max(at - native.now(), 0)
  }
  const fire = () => {
    let first = null
    const now = native.now()
    for (const [id, t] of timers) if (t.at <= now && (first === null || t.at < timers.get(first).at)) first = id
    if (first === null) return
    const { f, args, delay } = timers.get(first)
    if (delay) timers.get(first).at = now + delay
    else timers.delete(first)
    f(...args)
  }

  // Cryptography.

  const encoded = (buffer, encoding) => {
    if (encoding === 'bytes') return new Uint8Array(buffer)
    return native.encode(new Uint8Array(buffer), `${encoding}`)
  }
  // Keys are strings, bytes, or objects that are JSON Web Keys.
  const keyOf = (key) => {
    if (key !== null && typeof key === 'object' && !(key instanceof ArrayBuffer) && !ArrayBuffer.isView(key)) return stringify(key)
    return bytesOf(key, 'key')
  }
  const crypto = {
    hash: (algorithm, data, encoding = 'hex') => encoded(native.hash(`${algorithm}`, bytesOf(data, 'data')), encoding),
    hmac: (algorithm, key, data, encoding = 'hex') => encoded(native.hmac(`${algorithm}`, bytesOf(key, 'key'), bytesOf(data, 'data')), encoding),
    verifyHmac: (algorithm, key, data, signature) =>
      native.verifyHmac(`${algorithm}`, bytesOf(key, 'key'), bytesOf(data, 'data'), typeof signature === 'string' ? signature : ''),
    verify: (algorithm, key, data, signature) =>
      native.verify(`${algorithm}`, keyOf(key), bytesOf(data, 'data'), signature === null || signature === undefined ? '' : bytesOf(signature, 'signature')),
    encrypt: (key, data) => native.encrypt(bytesOf(key, 'key'), bytesOf(data, 'data')),
    decrypt: (key, text, as = 'text') => {
      checkForm(as)
      const buffer = native.decrypt(bytesOf(key, 'key'), `${text}`)
      return as === 'bytes' ? new Uint8Array(buffer) : native.text(new Uint8Array(buffer), 'utf-8', false, true)
    },
    timingSafeEqual: (a, b) => native.equal(bytesOf(a, 'a'), bytesOf(b, 'b')),
    randomUUID: () => native.uuid(),
    randomBytes: (n, encoding = 'bytes') => encoded(native.random(Number(n)), encoding),
    getRandomValues: (view) => {
      const bytes = bytesOf(view, 'the argument')
      bytes.set(new Uint8Array(native.random(bytes.length)))
      return view
    },
  }

  for (const [name, most] of [['hash', 3], ['hmac', 4], ['verifyHmac', 4], ['verify', 4], ['encrypt', 2], ['decrypt', 3], ['timingSafeEqual', 2], ['randomBytes', 2]]) {
    crypto[name] = taking(most, `crypto.${name}`, crypto[name])
  }

  // What is loaded when a script first uses it: see lazy.go.

  const report = (e) => { native.log(levels.error, format(['Uncaught', e])) }
  const parts = {}
  const part = (name) => (parts[name] ??= native.load(name)(native, { define, apply, isArray, bytesOf, parse, stringify, report, events: () => part('events') }))
  const lazily = (target, name, from) => Object.defineProperty(target, name, {
    get() {
      const value = part(from)[name]
      define(target, { [name]: value })
      return value
    },
    set(value) { define(target, { [name]: value }) },
    configurable: true, enumerable: false,
  })
  const lazyGlobals = {
    url: ['URL', 'URLSearchParams', 'structuredClone'], intl: ['Intl'], events: ['DOMException', 'Event', 'CustomEvent', 'EventTarget', 'AbortController', 'AbortSignal'], subtle: ['CryptoKey', 'SubtleCrypto'],
    web: ['Headers', 'Blob', 'Response', 'ReadableStream', 'WritableStream', 'TransformStream', 'CompressionStream', 'DecompressionStream', 'TextEncoderStream', 'TextDecoderStream'],
  }
  for (const from of Object.keys(lazyGlobals)) for (const name of lazyGlobals[from]) lazily(globalThis, name, from)
  lazily(crypto, 'subtle', 'subtle')
  const intl = () => part('intl').methods
  define(Number.prototype, { toLocaleString(locales, options) { return intl().number(Number.prototype.valueOf.call(this), locales, options) } })
  define(BigInt.prototype, { toLocaleString(locales, options) { return intl().number(BigInt.prototype.valueOf.call(this), locales, options) } })
  const { getTime: dateValue, toString: dateString, toTimeString: timeString } = Date.prototype
  const zoned = (text) => (text === 'Invalid Date' ? text : `${text} (Coordinated Universal Time)`)
  define(Date.prototype, {
    toString() { return zoned(apply(dateString, this, [])) },
    toTimeString() { return zoned(apply(timeString, this, [])) },
    toLocaleString(locales, options) { return intl().date(apply(dateValue, this, []), locales, options, 'any', 'all') },
    toLocaleDateString(locales, options) { return intl().date(apply(dateValue, this, []), locales, options, 'date', 'date') },
    toLocaleTimeString(locales, options) { return intl().date(apply(dateValue, this, []), locales, options, 'time', 'time') },
  })
  const textOf = (v, method) => {
    if (v === null || v === undefined) throw new TypeError(`String.prototype.${method} called on null or undefined`)
    return `${v}`
  }
  const { toUpperCase, toLowerCase } = String.prototype
  define(String.prototype, {
    localeCompare(other, locales, options) {
      const a = textOf(this, 'localeCompare'), b = `${other}`
      return locales === undefined && options === undefined ? native.compare('en-US', 'variant', a, b) : intl().compare(a, b, locales, options)
    },
    toLocaleUpperCase(locales) { return locales === undefined ? apply(toUpperCase, this, []) : intl().fold(textOf(this, 'toLocaleUpperCase'), locales, true) },
    toLocaleLowerCase(locales) { return locales === undefined ? apply(toLowerCase, this, []) : intl().fold(textOf(this, 'toLocaleLowerCase'), locales, false) },
  })
  function toLocaleString(locales, options) {
    return Array.from(this, (v) => (v === null || v === undefined ? '' : `${v.toLocaleString(locales, options)}`)).join(',')
  }
  define(Array.prototype, { toLocaleString })
  define(Object.getPrototypeOf(Uint8Array.prototype), { toLocaleString })

  // The engine forgets what only a WeakRef holds at once, where the language keeps it for the rest of the job: here it stays.
  class WeakRef {
    #target
    constructor(target) {
      if ((typeof target !== 'object' || target === null) && typeof target !== 'function' && (typeof target !== 'symbol' || Symbol.keyFor(target) !== undefined)) throw new TypeError('WeakRef: the target must be an object')
      this.#target = target
    }
    deref() { return this.#target }
    get [Symbol.toStringTag]() { return 'WeakRef' }
  }
  class SuppressedError extends Error {
    constructor(error, suppressed, message) {
      super(message)
      define(this, { error, suppressed })
    }
    get name() { return 'SuppressedError' }
  }
  for (const name of ['dispose', 'asyncDispose']) Object.defineProperty(Symbol, name, { value: Symbol(`Symbol.${name}`) })

  define(globalThis, {
    self: globalThis, WeakRef, SuppressedError,
    console, TextEncoder, TextDecoder, crypto,
    atob: (text) => native.atob(`${text}`), btoa: (text) => native.btoa(`${text}`),
    base64Encode, base64Decode, base64UrlEncode, base64UrlDecode,
    setTimeout: timer(false), setInterval: timer(true), clearTimeout: clearTimer, clearInterval: clearTimer,
    queueMicrotask: (f) => { Promise.resolve().then(f) },
    performance: { now: () => native.now() },
  })

  // The host.

  const parallel = 16
  const pending = new Map()
  const waiting = []
  let lastCall = 0
  const send = (name, json, resolve, reject) => {
    try {
      pending.set(native.call(name, json), { resolve, reject })
    } catch (e) {
      reject(e)
    }
  }
  const call = (name, ...args) => new Promise((resolve, reject) => {
    const json = stringify(args)
    if (pending.size < parallel) send(`${name}`, json, resolve, reject)
    else waiting.push([`${name}`, json, resolve, reject])
  })
  const failure = (message, code) => {
    const e = new Error(message)
    if (code) define(e, { code })
    return e
  }
  const settle = (id, failed, json, code) => {
    const { resolve, reject } = pending.get(id)
    pending.delete(id)
    if (waiting.length) send(...waiting.shift())
    if (failed) reject(failure(json, code))
    else resolve(json === undefined ? undefined : parse(json))
  }
  const callSync = (name, ...args) => {
    const [failed, json, code] = native.callSync(`${name}`, stringify(args))
    if (failed) throw failure(json, code)
    return json === undefined ? undefined : parse(json)
  }
  const respond = (v) => { native.respond(stringify(v)) }
  const host = { call, callSync, respond, log, crypto, base64Encode, base64Decode, base64UrlEncode, base64UrlDecode }
  const enter = hostPrelude ? hostPrelude(host) : (f, args, functions) => f(...args, functions)
  if (typeof enter !== 'function') throw new TypeError('the prelude must be a function that returns a function')

  // start calls an export and returns a promise of the JSON of its result.
  const start = async (loaded, namespace, name, args, names) => {
    await loaded
    let v = namespace[name]
    if (typeof v === 'function') {
      const functions = { respond, log }
      for (const n of names) functions[n] = (...args) => call(n, ...args)
      v = enter(v, parse(args), functions)
    }
    return stringify(await v)
  }

  // describe returns name, message and stack of what was thrown, whatever it is.
  const describe = (e) => {
    const text = (f) => {
      try {
        const v = f()
        return v === undefined || v === null ? '' : typeof v === 'string' ? v : inspect(v, 1, [])
      } catch {
        return ''
      }
    }
    if (e === null || typeof e !== 'object') return ['', text(() => inspect(e, 0, [])), '']
    if (native.classOf(e) === 'Error' || typeof e.message === 'string') return [text(() => e.name), text(() => e.message), text(() => e.stack)]
    return ['', text(() => inspect(e, 1, [])), '']
  }

  return [start, settle, next, fire, describe]
})
