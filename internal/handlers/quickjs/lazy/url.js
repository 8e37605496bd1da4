// URL, URLSearchParams and structuredClone.
(function (native, shared) {
  'use strict'
  const { parse, apply, isArray, define } = shared

  // URLs.

  const formEncode = (s) => encodeURIComponent(`${s}`.toWellFormed())
    .replace(/[!'()~]|%20/g, (c) => (c === '%20' ? '+' : '%' + c.charCodeAt(0).toString(16).toUpperCase()))
  const formDecode = (s) => native.unescape(s.replaceAll('+', ' '))

  const of = Symbol('of'), read = Symbol('read')
  class URLSearchParams {
    #list = []
    #changed = null
    constructor(init = '') {
      if (init instanceof URLSearchParams) {
        for (const [k, v] of init) this.#list.push([k, v])
      } else if (init !== null && typeof init === 'object') {
        if (typeof init[Symbol.iterator] === 'function') {
          for (const pair of init) {
            const [k, v, ...more] = pair
            if (more.length || [...pair].length !== 2) throw new TypeError('URLSearchParams takes pairs of a name and a value')
            this.#list.push([`${k}`, `${v}`])
          }
        } else {
          for (const k of Object.keys(init)) this.#list.push([k, `${init[k]}`])
        }
      } else {
        this.#read(`${init}`)
      }
    }
    #read(text) {
      this.#list.length = 0
      for (const part of text.replace(/^\?/, '').split('&')) {
        if (!part) continue
        const at = part.indexOf('=')
        this.#list.push(at < 0 ? [formDecode(part), ''] : [formDecode(part.slice(0, at)), formDecode(part.slice(at + 1))])
      }
    }
    static [of](changed) {
      const p = new URLSearchParams()
      p.#changed = changed
      return p
    }
    static [read](p, text) { p.#read(text) }
    #update() { this.#changed?.(this.toString()) }
    get size() { return this.#list.length }
    append(name, value) { this.#list.push([`${name}`, `${value}`]); this.#update() }
    delete(name, value) {
      this.#list = this.#list.filter(([k, v]) => k !== `${name}` || (value !== undefined && v !== `${value}`))
      this.#update()
    }
    get(name) { return this.#list.find(([k]) => k === `${name}`)?.[1] ?? null }
    getAll(name) { return this.#list.filter(([k]) => k === `${name}`).map(([, v]) => v) }
    has(name, value) { return this.#list.some(([k, v]) => k === `${name}` && (value === undefined || v === `${value}`)) }
    set(name, value) {
      const at = this.#list.findIndex(([k]) => k === `${name}`)
      if (at < 0) return this.append(name, value)
      this.#list[at][1] = `${value}`
      this.#list = this.#list.filter(([k], i) => i <= at || k !== `${name}`)
      this.#update()
    }
    sort() { this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#update() }
    forEach(f, self) { for (const [k, v] of this) apply(f, self, [v, k, this]) }
    *entries() { for (const [k, v] of this.#list) yield [k, v] }
    *keys() { for (const [k] of this.#list) yield k }
    *values() { for (const [, v] of this.#list) yield v }
    [Symbol.iterator]() { return this.entries() }
    toString() { return this.#list.map(([k, v]) => `${formEncode(k)}=${formEncode(v)}`).join('&') }
  }
  const { [of]: paramsOf, [read]: paramsRead } = URLSearchParams
  delete URLSearchParams[of]
  delete URLSearchParams[read]

  class URL {
    #parts
    #params
    constructor(url, base) {
      this.#parts = native.url(`${url}`, base === undefined ? undefined : `${base}`)
      if (!this.#parts) throw new TypeError(`Invalid URL: ${url}`)
      this.#parts = parse(this.#parts)
    }
    static canParse(url, base) { return native.url(`${url}`, base === undefined ? undefined : `${base}`) !== undefined }
    static parse(url, base) { return URL.canParse(url, base) ? new URL(url, base) : null }
    #set(name, value) {
      const parts = native.urlSet(this.#parts.href, name, `${value}`)
      if (parts) this.#parts = parse(parts)
    }
    get href() { return this.#parts.href }
    set href(v) { this.#parts = parse(native.url(`${v}`) ?? (() => { throw new TypeError(`Invalid URL: ${v}`) })()); this.#readParams() }
    get origin() { return this.#parts.origin }
    get protocol() { return this.#parts.protocol }
    set protocol(v) { this.#set('protocol', v) }
    get username() { return this.#parts.username }
    set username(v) { this.#set('username', v) }
    get password() { return this.#parts.password }
    set password(v) { this.#set('password', v) }
    get host() { return this.#parts.host }
    set host(v) { this.#set('host', v) }
    get hostname() { return this.#parts.hostname }
    set hostname(v) { this.#set('hostname', v) }
    get port() { return this.#parts.port }
    set port(v) { this.#set('port', v) }
    get pathname() { return this.#parts.pathname }
    set pathname(v) { this.#set('pathname', v) }
    get search() { return this.#parts.search }
    set search(v) { this.#set('search', v); this.#readParams() }
    get hash() { return this.#parts.hash }
    set hash(v) { this.#set('hash', v) }
    get searchParams() {
      if (!this.#params) {
        this.#params = paramsOf((text) => this.#set('search', text))
        this.#readParams()
      }
      return this.#params
    }
    #readParams() { if (this.#params) paramsRead(this.#params, this.#parts.search) }
    toString() { return this.#parts.href }
    toJSON() { return this.#parts.href }
  }

  // structuredClone.

  const cloneError = (what) => {
    const e = new Error(`${what} cannot be cloned`)
    e.name = 'DataCloneError'
    return e
  }
  const errorTypes = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError }
  const clone = (v, seen) => {
    if (typeof v === 'function') throw cloneError('a function')
    if (typeof v === 'symbol') throw cloneError('a symbol')
    if (v === null || typeof v !== 'object') return v
    if (seen.has(v)) return seen.get(v)
    const keep = (copy) => { seen.set(v, copy); return copy }
    if (isArray(v)) {
      const copy = keep(new Array(v.length))
      for (const k of Object.keys(v)) copy[k] = clone(v[k], seen)
      return copy
    }
    switch (native.classOf(v)) {
      case 'Date': return keep(new Date(v.getTime()))
      case 'RegExp': return keep(new RegExp(v.source, v.flags))
      case 'Boolean': case 'Number': case 'String': case 'BigInt': return keep(Object(v.valueOf()))
      case 'ArrayBuffer': return keep(v.slice(0))
      case 'View': {
        const buffer = clone(v.buffer, seen)
        return keep(v instanceof DataView ? new DataView(buffer, v.byteOffset, v.byteLength) : new v.constructor(buffer, v.byteOffset, v.length))
      }
      case 'Map': {
        const copy = keep(new Map())
        for (const [k, x] of [...v]) copy.set(clone(k, seen), clone(x, seen))
        return copy
      }
      case 'Set': {
        const copy = keep(new Set())
        for (const x of [...v]) copy.add(clone(x, seen))
        return copy
      }
      case 'Error': {
        const type = Object.hasOwn(errorTypes, v.name) ? errorTypes[v.name] : Error
        const copy = keep(Object.create(type.prototype))
        for (const k of ['message', 'stack', 'cause']) if (Object.hasOwn(v, k)) define(copy, { [k]: clone(v[k], seen) })
        return copy
      }
      case 'Object': {
        const copy = keep({})
        for (const k of Object.keys(v)) define(copy, { [k]: undefined }), Object.defineProperty(copy, k, { value: clone(v[k], seen), enumerable: true })
        return copy
      }
    }
    throw cloneError(`an object of class ${native.classOf(v)}`)
  }
  const structuredClone = (v) => clone(v, new Map())
  return { URL, URLSearchParams, structuredClone }
})
