// DOMException, Event, EventTarget and what cancels: AbortController and AbortSignal.
(function (native, shared) {
  'use strict'
  const { define, report } = shared
  const codes = { NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12, InvalidAccessError: 15, AbortError: 20, TimeoutError: 23, DataCloneError: 25, IndexSizeError: 1, InvalidCharacterError: 5, QuotaExceededError: 22 }
  class DOMException extends Error {
    #name
    constructor(message = '', name = 'Error') {
      super(`${message}`)
      if (name !== null && typeof name === 'object') {
        if ('cause' in name) define(this, { cause: name.cause })
        name = name.name ?? 'Error'
      }
      this.#name = `${name}`
    }
    get name() { return this.#name }
    get code() { return codes[this.#name] ?? 0 }
    get [Symbol.toStringTag]() { return 'DOMException' }
  }
  const state = new WeakMap() // of events
  class Event {
    static NONE = 0
    static CAPTURING_PHASE = 1
    static AT_TARGET = 2
    static BUBBLING_PHASE = 3
    constructor(type, options = {}) {
      if (!arguments.length) throw new TypeError('the type of an event is missing')
      const { bubbles = false, cancelable = false, composed = false } = options ?? {}
      state.set(this, { type: `${type}`, bubbles: Boolean(bubbles), cancelable: Boolean(cancelable), composed: Boolean(composed), target: null, phase: 0, prevented: false, stopped: false, time: native.now() })
    }
    get type() { return state.get(this).type }
    get bubbles() { return state.get(this).bubbles }
    get cancelable() { return state.get(this).cancelable }
    get composed() { return state.get(this).composed }
    get target() { return state.get(this).target }
    get srcElement() { return state.get(this).target }
    get currentTarget() { return state.get(this).phase ? state.get(this).target : null }
    get eventPhase() { return state.get(this).phase }
    get defaultPrevented() { return state.get(this).prevented }
    get returnValue() { return !state.get(this).prevented }
    get cancelBubble() { return state.get(this).stopped }
    get isTrusted() { return false }
    get timeStamp() { return state.get(this).time }
    composedPath() { return state.get(this).phase ? [state.get(this).target] : [] }
    preventDefault() { const s = state.get(this); if (s.cancelable && !s.passive) s.prevented = true }
    stopPropagation() { state.get(this).stopped = true }
    stopImmediatePropagation() { state.get(this).stopped = state.get(this).ended = true }
    get [Symbol.toStringTag]() { return 'Event' }
  }
  class CustomEvent extends Event {
    #detail
    constructor(type, options) { super(type, options); this.#detail = options?.detail ?? null }
    get detail() { return this.#detail }
  }
  const listeners = new WeakMap()
  const of = (target) => {
    if (!listeners.has(target)) listeners.set(target, [])
    return listeners.get(target)
  }
  class EventTarget {
    addEventListener(type, callback, options) {
      const { capture = false, once = false, passive = false, signal } = typeof options === 'object' && options !== null ? options : { capture: options }
      if (callback === null || callback === undefined || signal?.aborted) return
      if (typeof callback !== 'function' && typeof callback !== 'object') throw new TypeError('a listener must be a function or an object with handleEvent')
      type = `${type}`
      const all = of(this)
      if (all.some((l) => l.type === type && l.callback === callback && l.capture === Boolean(capture))) return
      all.push({ type, callback, capture: Boolean(capture), once, passive })
      signal?.addEventListener('abort', () => this.removeEventListener(type, callback, { capture }), { once: true })
    }
    removeEventListener(type, callback, options) {
      const capture = Boolean(typeof options === 'object' && options !== null ? options.capture : options), all = of(this)
      const at = all.findIndex((l) => l.type === `${type}` && l.callback === callback && l.capture === capture)
      if (at >= 0) all.splice(at, 1)[0].removed = true
    }
    dispatchEvent(event) {
      const s = state.get(event)
      if (!s) throw new TypeError('the argument must be an Event')
      if (s.phase) throw new DOMException('The event is already being dispatched', 'InvalidStateError')
      Object.assign(s, { target: this, phase: 2 })
      for (const l of [...of(this)]) {
        if (l.type !== s.type || l.removed) continue
        if (l.once) this.removeEventListener(l.type, l.callback, l.capture)
        s.passive = l.passive
        try {
          if (typeof l.callback === 'function') l.callback.call(this, event)
          else l.callback.handleEvent(event)
        } catch (e) {
          report(e)
        }
        if (s.ended) break
      }
      Object.assign(s, { phase: 0, passive: false, stopped: false, ended: false })
      return !s.prevented
    }
    get [Symbol.toStringTag]() { return 'EventTarget' }
  }
  const secret = Symbol('secret'), abort = Symbol('abort')
  class AbortSignal extends EventTarget {
    #reason
    #handler = null
    constructor(s) {
      super()
      if (s !== secret) throw new TypeError('Illegal constructor')
    }
    static abort(reason) {
      const signal = new AbortSignal(secret)
      signal.#reason = reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason
      return signal
    }
    static timeout(ms) {
      const signal = new AbortSignal(secret)
      setTimeout(() => signal[abort](new DOMException('The operation was aborted due to timeout', 'TimeoutError')), ms)
      return signal
    }
    static any(signals) {
      const all = Array.from(signals), done = all.find((s) => s.aborted)
      if (done) return AbortSignal.abort(done.reason)
      const signal = new AbortSignal(secret)
      for (const s of all) s.addEventListener('abort', () => signal[abort](s.reason), { once: true })
      return signal
    }
    [abort](reason) {
      if (this.aborted) return
      this.#reason = reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : reason
      this.dispatchEvent(new Event('abort'))
    }
    get aborted() { return this.#reason !== undefined }
    get reason() { return this.#reason }
    get onabort() { return this.#handler }
    set onabort(f) {
      if (this.#handler) this.removeEventListener('abort', this.#handler)
      this.#handler = typeof f === 'function' ? f : null
      if (this.#handler) this.addEventListener('abort', this.#handler)
    }
    throwIfAborted() { if (this.aborted) throw this.#reason }
    get [Symbol.toStringTag]() { return 'AbortSignal' }
  }
  const doAbort = AbortSignal.prototype[abort]
  delete AbortSignal.prototype[abort]
  Object.defineProperty(AbortSignal.prototype, abort, { value: doAbort })
  class AbortController {
    #signal = new AbortSignal(secret)
    get signal() { return this.#signal }
    abort(reason) { this.#signal[abort](reason) }
    get [Symbol.toStringTag]() { return 'AbortController' }
  }
  return { DOMException, Event, CustomEvent, EventTarget, AbortSignal, AbortController }
})
