// The module that is compiled for a handler: it imports the handler's file, and calls it with its context.
const all = handler

export const describe = () => ({
  config: all.config,
  functions: Object.keys(all).filter((name) => typeof all[name] === 'function'),
})

const set = (target, name, value) => Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: true })
const { crypto, base64Encode, base64Decode, base64UrlEncode, base64UrlDecode, btoa, atob } = globalThis

// A body that is not UTF-8 is a string with a character for each byte: what crypto computes of it, it computes of the bytes.
const ofBytes = ({ rawBody, rawBodyEncoding }) => {
  if (rawBodyEncoding !== 'binary') return
  for (const [name, at] of [['hash', 1], ['hmac', 2], ['verifyHmac', 2], ['verify', 2]]) {
    const compute = crypto[name]
    crypto[name] = (...args) => {
      if (args[at] === rawBody) args[at] = base64Decode(btoa(rawBody), 'bytes')
      return compute(...args)
    }
  }
}

// What a handler answers as JSON can hold it: bytes are base64, and a number that JSON does not have is no status.
const isBytes = (v) => v instanceof ArrayBuffer || ArrayBuffer.isView(v)
const answerOf = (v) => {
  if (isBytes(v)) return { status: 200, body: base64Encode(v), encoding: 'base64' }
  if (v === null || typeof v !== 'object' || typeof v.status !== 'number') return v
  if (!Number.isFinite(v.status)) throw new TypeError(`the status of a response must be a whole number from 200 to 599, not ${v.status}`)
  if (typeof v.arrayBuffer === 'function') { // a Response
    return v.arrayBuffer().then((body) => ({ status: v.status, headers: Object.fromEntries(v.headers), body: base64Encode(body), encoding: 'base64' }))
  }
  const { headers, body } = v
  if (typeof headers === 'object' && headers?.[Symbol.iterator]) v = { ...v, headers: Object.fromEntries(headers) } // Headers, a Map or pairs
  if (isBytes(body)) v = { ...v, body: base64Encode(body), encoding: 'base64' }
  return v
}
const answering = (respond) => (v, ...more) => {
  if (more.length) throw new TypeError('respond takes one argument: a status and headers are members of it, such as respond({status: 202, body})')
  const answer = answerOf(v)
  if (answer instanceof Promise) return answer.then(respond)
  respond(answer)
}
// What notify and email of a draft do not send is in the log.
const logged = (send, log) => async (...args) => {
  const { unsent = [], ...result } = await send(...args)
  for (const line of unsent) log.info(line)
  return result
}
const resultOf = (v) => {
  if (isBytes(v)) throw new TypeError('a tool returns what JSON can hold: turn bytes into text with base64Encode')
  return v
}

export const invoke = async (data, functions) => {
  const { respond, log, dataset } = functions
  if (data.request) ofBytes(data.request)
  // The document can be text, bytes, or an object such as a file of a form, with options beside it.
  // With a content type in place of the options, a text is base64: extractText(base64, contentType).
  const extractText = functions.extractText && ((document, options, ...more) => {
    const given = typeof options === 'string' ? { contentType: options } : options
    if (isBytes(document)) document = { content: base64Encode(document), encoding: 'base64' }
    if (typeof document === 'string') document = typeof options === 'string' ? { content: document, encoding: 'base64' } : { content: document }
    return functions.extractText(document, given, ...more)
  })
  const context = {}
  for (const alias of data.datasets) {
    set(context, alias, {
      fields: (...args) => dataset(alias, 'fields', ...args),
      rows: (...args) => dataset(alias, 'rows', ...args),
      count: (...args) => dataset(alias, 'count', ...args),
    })
  }
  const called = data.tool ?? { request: data.request, respond: answering(respond) } // a tool has args, run and idempotencyKey
  const given = { ...called, env: data.env, context, log, crypto, base64Encode, base64Decode, base64UrlEncode, base64UrlDecode, btoa, atob }
  for (const name of ['query', 'fetch', 'emit', 'notify', 'email', 'markdown']) {
    if (functions[name]) given[name] = functions[name]
  }
  for (const name of ['notify', 'email']) if (given[name]) given[name] = logged(given[name], log)
  if (extractText) given.extractText = extractText
  for (const name of ['markdown', 'extractText']) if (given[name]) set(globalThis, name, given[name])
  return (data.tool ? resultOf : answerOf)(await all[data.method](given))
}
