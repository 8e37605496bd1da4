// Headers, Blob, the streams and what reads them: ReadableStream, WritableStream, TransformStream, CompressionStream, DecompressionStream, the
// streams of text, and Response as the holder of a body.
(function (native, shared) {
  'use strict'
  const { bytesOf, parse, stringify, events } = shared
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
  class Headers {
    #all = new Map()
    constructor(init) {
      if (init === undefined) return
      if (init === null || typeof init !== 'object') throw new TypeError('Headers are made of an object or of pairs')
      for (const pair of typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init)) {
        const [name, value, ...more] = pair
        if (more.length || [...pair].length !== 2) throw new TypeError('Headers take pairs of a name and a value')
        this.append(name, value)
      }
    }
    static #name(name) {
      name = `${name}`
      if (!token.test(name)) throw new TypeError(`Header name must be a valid HTTP token ["${name}"]`)
      return name.toLowerCase()
    }
    static #value(value) {
      value = `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, '')
      if (/[\0\r\n]|[^\0-\xff]/.test(value)) throw new TypeError('the value of a header has a character that no header can have')
      return value
    }
    append(name, value) {
      name = Headers.#name(name)
      value = Headers.#value(value)
      if (this.#all.has(name)) this.#all.get(name).push(value)
      else this.#all.set(name, [value])
    }
    set(name, value) { this.#all.set(Headers.#name(name), [Headers.#value(value)]) }
    get(name) { return this.#all.get(Headers.#name(name))?.join(', ') ?? null }
    has(name) { return this.#all.has(Headers.#name(name)) }
    delete(name) { this.#all.delete(Headers.#name(name)) }
    getSetCookie() { return [...(this.#all.get('set-cookie') ?? [])] }
    forEach(f, self) { for (const [k, v] of this) f.call(self, v, k, this) }
    *entries() {
      for (const name of [...this.#all.keys()].sort()) {
        if (name === 'set-cookie') for (const v of this.#all.get(name)) yield [name, v]
        else yield [name, this.#all.get(name).join(', ')]
      }
    }
    *keys() { for (const [k] of this.entries()) yield k }
    *values() { for (const [, v] of this.entries()) yield v }
    [Symbol.iterator]() { return this.entries() }
    get [Symbol.toStringTag]() { return 'Headers' }
  }

  // Streams. A queue of chunks, and those who wait for one.

  const closed = new TypeError('the stream is closed')
  class ReadableStream {
    #queue = []
    #waiting = []
    #ended = false
    #error
    #failed = false
    #source
    #pulling = false
    #locked = false
    #started
    constructor(source = {}) {
      this.#source = source ?? {}
      const self = this
      const controller = {
        get desiredSize() { return self.#failed ? null : self.#ended ? 0 : 1 - self.#queue.length },
        enqueue(chunk) {
          if (self.#ended) throw closed
          if (self.#waiting.length) self.#waiting.shift().resolve({ done: false, value: chunk })
          else self.#queue.push(chunk)
        },
        close() {
          if (self.#ended) throw closed
          self.#ended = true
          if (!self.#queue.length) for (const w of self.#waiting.splice(0)) w.resolve({ done: true, value: undefined })
        },
        error(e) {
          self.#failed = self.#ended = true
          self.#error = e
          self.#queue.length = 0
          for (const w of self.#waiting.splice(0)) w.reject(e)
        },
      }
      this.#control = controller
      this.#started = (async () => this.#source.start?.(controller))().catch((e) => controller.error(e))
    }
    #control
    static from(values) {
      const iterator = values[Symbol.asyncIterator]?.() ?? values[Symbol.iterator]()
      return new ReadableStream({
        async pull(c) {
          const { done, value } = await iterator.next()
          if (done) c.close()
          else c.enqueue(await value)
        },
        async cancel() { await iterator.return?.() },
      })
    }
    get locked() { return this.#locked }
    async #read() {
      await this.#started
      for (;;) {
        if (this.#queue.length) return { done: false, value: this.#queue.shift() }
        if (this.#failed) throw this.#error
        if (this.#ended) return { done: true, value: undefined }
        if (this.#source.pull && !this.#pulling) {
          this.#pulling = true
          try {
            await this.#source.pull(this.#control)
          } catch (e) {
            this.#control.error(e)
          } finally {
            this.#pulling = false
          }
          if (this.#queue.length || this.#ended) continue
        }
        return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
      }
    }
    async #cancel(reason) {
      if (this.#ended) return
      this.#ended = true
      this.#queue.length = 0
      for (const w of this.#waiting.splice(0)) w.resolve({ done: true, value: undefined })
      await this.#source.cancel?.(reason)
    }
    getReader(options) {
      if (options?.mode !== undefined) throw new TypeError('streams of bytes have no readers of their own here')
      if (this.#locked) throw new TypeError('the stream is locked to a reader')
      this.#locked = true
      const done = Promise.withResolvers()
      done.promise.catch(() => {})
      const reader = {
        read: async () => {
          if (!this.#locked) throw new TypeError('the reader was released')
          try {
            const r = await this.#read()
            if (r.done) done.resolve()
            return r
          } catch (e) {
            done.reject(e)
            throw e
          }
        },
        releaseLock: () => { this.#locked = false }, cancel: (reason) => this.#cancel(reason), closed: done.promise,
      }
      return reader
    }
    async cancel(reason) {
      if (this.#locked) throw new TypeError('the stream is locked to a reader')
      return this.#cancel(reason)
    }
    tee() {
      const reader = this.getReader()
      const branches = [[], []].map(() => {
        let control
        const stream = new ReadableStream({
          start(c) { control = c },
          async pull() {
            const { done, value } = await reader.read()
            for (const b of branches) done ? b.control.desiredSize !== null && b.close() : b.control.enqueue(value)
          },
        })
        let open = true
        return { stream, get control() { return control }, close() { if (open) { open = false; control.close() } } }
      })
      return branches.map((b) => b.stream)
    }
    pipeThrough({ readable, writable }, options) {
      this.pipeTo(writable, options).catch(() => {})
      return readable
    }
    async pipeTo(target, options = {}) {
      const reader = this.getReader(), writer = target.getWriter()
      try {
        for (;;) {
          options.signal?.throwIfAborted()
          const { done, value } = await reader.read()
          if (done) break
          await writer.write(value)
        }
      } catch (e) {
        if (!options.preventAbort) await writer.abort(e).catch(() => {})
        if (!options.preventCancel) await reader.cancel(e).catch(() => {})
        throw e
      }
      if (!options.preventClose) await writer.close()
      reader.releaseLock()
      writer.releaseLock()
    }
    values(options) {
      const reader = this.getReader()
      return {
        next: () => reader.read(),
        async return(value) {
          if (!options?.preventCancel) await reader.cancel()
          reader.releaseLock()
          return { done: true, value }
        },
        [Symbol.asyncIterator]() { return this },
      }
    }
    [Symbol.asyncIterator](options) { return this.values(options) }
    get [Symbol.toStringTag]() { return 'ReadableStream' }
  }
  class WritableStream {
    #sink
    #last
    #locked = false
    #state = 'open'
    #error
    constructor(sink = {}) {
      this.#sink = sink ?? {}
      const controller = { error: (e) => this.#fail(e), signal: undefined }
      this.#controller = controller
      this.#last = (async () => this.#sink.start?.(controller))()
      this.#last.catch((e) => this.#fail(e))
    }
    #controller
    #fail(e) {
      if (this.#state === 'failed') return
      this.#state = 'failed'
      this.#error = e
    }
    #then(f) {
      const next = this.#last.then(() => {
        if (this.#state === 'failed') throw this.#error
        return f()
      })
      this.#last = next.catch((e) => this.#fail(e))
      return next
    }
    get locked() { return this.#locked }
    getWriter() {
      if (this.#locked) throw new TypeError('the stream is locked to a writer')
      this.#locked = true
      const done = Promise.withResolvers()
      done.promise.catch(() => {})
      return {
        write: (chunk) => (this.#state === 'closed' ? Promise.reject(closed) : this.#then(() => this.#sink.write?.(chunk, this.#controller))),
        close: () => {
          if (this.#state === 'closed') return Promise.reject(closed)
          const end = this.#then(() => this.#sink.close?.())
          if (this.#state === 'open') this.#state = 'closed'
          end.then(done.resolve, done.reject)
          return end
        },
        abort: async (reason) => {
          if (this.#state === 'failed' && this.#error === reason) return
          this.#fail(reason)
          await this.#sink.abort?.(reason)
        },
        releaseLock: () => { this.#locked = false }, ready: Promise.resolve(), closed: done.promise, desiredSize: 1,
      }
    }
    async close() { return this.getWriter().close() }
    async abort(reason) { return this.getWriter().abort(reason) }
    get [Symbol.toStringTag]() { return 'WritableStream' }
  }
  class TransformStream {
    #readable
    #writable
    constructor(transformer = {}) {
      let control
      this.#readable = new ReadableStream({ start(c) { control = c } })
      const controller = { enqueue: (v) => control.enqueue(v), error: (e) => control.error(e), terminate: () => control.close(), get desiredSize() { return control.desiredSize } }
      const trying = async (f) => {
        try {
          return await f()
        } catch (e) {
          control.error(e)
          throw e
        }
      }
      this.#writable = new WritableStream({
        start: () => transformer.start?.(controller),
        write: (chunk) => trying(() => (transformer.transform ? transformer.transform(chunk, controller) : controller.enqueue(chunk))),
        close: () => trying(async () => { await transformer.flush?.(controller); control.close() }),
        abort: (e) => control.error(e),
      })
    }
    get readable() { return this.#readable }
    get writable() { return this.#writable }
    get [Symbol.toStringTag]() { return 'TransformStream' }
  }
  const joined = (chunks) => {
    let size = 0
    for (const c of chunks) size += c.length
    const all = new Uint8Array(size)
    size = 0
    for (const c of chunks) {
      all.set(c, size)
      size += c.length
    }
    return all
  }
  const asBytes = (chunk) => {
    if (!(chunk instanceof ArrayBuffer) && !ArrayBuffer.isView(chunk)) throw new TypeError('the chunks must be bytes')
    return bytesOf(chunk, 'a chunk')
  }
  // It works on all chunks at once: the bounds of a script's memory are those of what it compresses.
  const coder = (code) => class {
    #stream
    constructor(format) {
      if (!['gzip', 'deflate', 'deflate-raw'].includes(`${format}`)) throw new TypeError(`the format ${format} is not supported: use gzip, deflate or deflate-raw`)
      const chunks = []
      this.#stream = new TransformStream({
        transform(chunk) { chunks.push(asBytes(chunk).slice()) },
        flush(c) { c.enqueue(new Uint8Array(code(`${format}`, joined(chunks)))) },
      })
    }
    get readable() { return this.#stream.readable }
    get writable() { return this.#stream.writable }
  }
  class CompressionStream extends coder(native.compress) {}
  class DecompressionStream extends coder(native.decompress) {}
  class TextEncoderStream {
    #stream = new TransformStream({ transform(chunk, c) { c.enqueue(new TextEncoder().encode(chunk)) } })
    get encoding() { return 'utf-8' }
    get readable() { return this.#stream.readable }
    get writable() { return this.#stream.writable }
  }
  class TextDecoderStream {
    #decoder
    #stream
    constructor(label, options) {
      const decoder = this.#decoder = new TextDecoder(label, options)
      const send = (c, text) => { if (text) c.enqueue(text) }
      this.#stream = new TransformStream({ transform(chunk, c) { send(c, decoder.decode(chunk, { stream: true })) }, flush(c) { send(c, decoder.decode()) } })
    }
    get encoding() { return this.#decoder.encoding }
    get readable() { return this.#stream.readable }
    get writable() { return this.#stream.writable }
  }

  // Bodies.

  class Blob {
    #bytes
    #type
    constructor(parts = [], options = {}) {
      if (typeof parts !== 'object' || parts === null || typeof parts[Symbol.iterator] !== 'function') throw new TypeError('the parts of a Blob must be a list')
      this.#bytes = joined(Array.from(parts, (p) => (p instanceof Blob ? p.#bytes : p instanceof ArrayBuffer || ArrayBuffer.isView(p) ? bytesOf(p, 'a part') : new Uint8Array(native.utf8(`${p}`)))))
      this.#type = `${options?.type ?? ''}`.toLowerCase()
    }
    get size() { return this.#bytes.length }
    get type() { return this.#type }
    async arrayBuffer() { return this.#bytes.slice().buffer }
    async bytes() { return this.#bytes.slice() }
    async text() { return native.text(this.#bytes, 'utf-8', false, false) }
    slice(start = 0, end = this.size, type = '') { return new Blob([this.#bytes.slice(start, end)], { type }) }
    stream() { return ReadableStream.from([this.#bytes.slice()]) }
    get [Symbol.toStringTag]() { return 'Blob' }
  }
  const read = async (stream) => {
    const chunks = []
    for await (const chunk of stream) chunks.push(asBytes(chunk).slice())
    return joined(chunks)
  }
  class Response {
    #body = null
    #used = false
    #headers
    #status
    #statusText
    constructor(body = null, { status = 200, statusText = '', headers } = {}) {
      if (!(status >= 200 && status <= 599)) throw new RangeError('the status of a Response is 200 to 599')
      this.#headers = new Headers(headers)
      this.#status = Number(status)
      this.#statusText = `${statusText}`
      let type = null
      if (body === null || body === undefined) return
      if (body instanceof ReadableStream) this.#body = body
      else if (body instanceof Blob) [this.#body, type] = [body.stream(), body.type || null]
      else if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) this.#body = ReadableStream.from([bytesOf(body, 'the body').slice()])
      else {
        type = body instanceof URLSearchParams ? 'application/x-www-form-urlencoded;charset=UTF-8' : 'text/plain;charset=UTF-8'
        this.#body = ReadableStream.from([new Uint8Array(native.utf8(`${body}`))])
      }
      if (type && !this.#headers.has('content-type')) this.#headers.set('content-type', type)
    }
    static json(value, init = {}) {
      const headers = new Headers(init.headers)
      if (!headers.has('content-type')) headers.set('content-type', 'application/json')
      return new Response(stringify(value), { ...init, headers })
    }
    get body() { return this.#body }
    get bodyUsed() { return this.#used }
    get headers() { return this.#headers }
    get ok() { return this.#status < 300 }
    get status() { return this.#status }
    get statusText() { return this.#statusText }
    async bytes() {
      if (this.#used || this.#body?.locked) throw new TypeError('Body is unusable: Body has already been read')
      this.#used = this.#body !== null
      return this.#body ? read(this.#body) : new Uint8Array(0)
    }
    async arrayBuffer() { return (await this.bytes()).buffer }
    async text() { return native.text(await this.bytes(), 'utf-8', false, false) }
    async json() { return parse(await this.text()) }
    async blob() { return new Blob([await this.bytes()], { type: this.#headers.get('content-type') ?? '' }) }
    get [Symbol.toStringTag]() { return 'Response' }
  }
  return { Headers, ReadableStream, WritableStream, TransformStream, CompressionStream, DecompressionStream, TextEncoderStream, TextDecoderStream, Blob, Response }
})
