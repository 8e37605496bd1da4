// What the globals of the web do.
const t = async (f) => {
  try {
    return await f()
  } catch (e) {
    return e.name + ': ' + e.message
  }
}
const enc = (s) => new TextEncoder().encode(s),
  hex = (b) => Array.from(new Uint8Array(b), (x) => x.toString(16).padStart(2, '0')).join('')
export const run = async () => [
  await t(async () => {
    const log = []
    {
      using a = {
        [Symbol.dispose]() {
          log.push('a')
        },
      }
      await using b = {
        async [Symbol.asyncDispose]() {
          log.push('b')
        },
      }
      log.push('body')
    }
    return log
  }),
  await t(() => new WeakRef({ x: 1 }).deref().x),
  await t(() => {
    try {
      new WeakRef(1)
    } catch (e) {
      return e.name
    }
  }),
  await t(() => {
    const e = new EventTarget(),
      l = []
    e.addEventListener(
      'x',
      (ev) => {
        l.push(ev.type, ev.target === e, ev.detail)
        ev.preventDefault()
      },
      { once: true },
    )
    const r = e.dispatchEvent(new CustomEvent('x', { cancelable: true, detail: 5 }))
    e.dispatchEvent(new Event('x'))
    return [l, r]
  }),
  await t(() => {
    class B extends EventTarget {}
    const b = new B()
    let n = 0
    const o = {
      handleEvent() {
        n++
      },
    }
    b.addEventListener('a', o)
    b.addEventListener('a', o)
    b.dispatchEvent(new Event('a'))
    b.removeEventListener('a', o)
    b.dispatchEvent(new Event('a'))
    return n
  }),
  await t(() => {
    const c = new AbortController(),
      l = []
    c.signal.onabort = () => l.push('on')
    c.signal.addEventListener('abort', () => l.push(c.signal.reason.name))
    c.abort()
    c.abort('again')
    return [l, c.signal.aborted, c.signal.reason.message, c.signal.reason instanceof DOMException, c.signal.reason.code]
  }),
  await t(() => {
    try {
      AbortSignal.abort('why').throwIfAborted()
    } catch (e) {
      return e
    }
  }),
  await t(async () => {
    const s = AbortSignal.any([AbortSignal.timeout(5), new AbortController().signal])
    await new Promise((r) => s.addEventListener('abort', r))
    return s.reason.name
  }),
  await t(() => {
    const h = new Headers({ 'Content-Type': 'a', 'X-B': ' 1 ' })
    h.append('x-b', '2')
    h.append('Set-Cookie', 'a=1')
    h.append('set-cookie', 'b=2')
    return [
      [...h],
      h.get('X-b'),
      h.has('none'),
      h.get('none'),
      h.getSetCookie(),
      Object.fromEntries(new Headers([['a', '1']])),
      JSON.stringify(h),
    ]
  }),
  await t(() => new Headers({ 'a b': '1' })).then((x) => String(x).split(':')[0]),
  await t(async () => hex(await crypto.subtle.digest('SHA-256', enc('abc')))),
  await t(async () => {
    const k = await crypto.subtle.importKey('raw', enc('key'), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign', 'verify'])
    const s = await crypto.subtle.sign('HMAC', k, enc('data'))
    return [
      hex(s),
      await crypto.subtle.verify('HMAC', k, s, enc('data')),
      await crypto.subtle.verify('HMAC', k, s, enc('datb')),
      await crypto.subtle.exportKey('jwk', k),
      k.algorithm,
      k.type,
      k.extractable,
      k.usages,
      String(k),
    ]
  }),
  await t(async () => {
    const k = await crypto.subtle.importKey('jwk', { kty: 'oct', k: 'AAECAwQFBgcICQoLDA0ODw' }, 'AES-GCM', false, ['encrypt', 'decrypt'])
    const iv = new Uint8Array(12)
    const c = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: enc('x') }, k, enc('hello'))
    return [
      hex(c),
      new TextDecoder().decode(await crypto.subtle.decrypt({ name: 'AES-GCM', iv, additionalData: enc('x') }, k, c)),
      await t(() => crypto.subtle.decrypt({ name: 'AES-GCM', iv }, k, c)).then((x) => x.split(':')[0]),
    ]
  }),
  await t(async () => {
    const k = await crypto.subtle.importKey('raw', new Uint8Array(16), 'AES-CBC', false, ['encrypt', 'decrypt'])
    const c = await crypto.subtle.encrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, k, enc('hello world 16bytes'))
    return [hex(c), new TextDecoder().decode(await crypto.subtle.decrypt({ name: 'AES-CBC', iv: new Uint8Array(16) }, k, c))]
  }),
  await t(async () => {
    const k = await crypto.subtle.importKey('raw', enc('pass'), 'PBKDF2', false, ['deriveBits', 'deriveKey'])
    const b = await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: enc('salt'), iterations: 1000 }, k, 256)
    const d = await crypto.subtle.deriveKey(
      { name: 'PBKDF2', hash: 'SHA-1', salt: enc('salt'), iterations: 10 },
      k,
      { name: 'AES-GCM', length: 128 },
      true,
      ['encrypt'],
    )
    return [hex(b), hex(await crypto.subtle.exportKey('raw', d))]
  }),
  await t(async () => {
    const k = await crypto.subtle.importKey('raw', enc('pass'), 'HKDF', false, ['deriveBits'])
    return hex(await crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-512', salt: enc('salt'), info: enc('i') }, k, 128))
  }),
  ...(await Promise.all(
    [
      ['RSASSA-PKCS1-v1_5', { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }],
      ['RSA-PSS', { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-384' }],
      ['ECDSA', { namedCurve: 'P-256' }],
      ['ECDSA', { namedCurve: 'P-521' }],
    ].map(([name, p]) =>
      t(async () => {
        const { publicKey, privateKey } = await crypto.subtle.generateKey({ name, ...p }, true, ['sign', 'verify'])
        const a = { name, saltLength: 32, hash: 'SHA-256' }
        const s = await crypto.subtle.sign(a, privateKey, enc('x'))
        const out = [
          await crypto.subtle.verify(a, publicKey, s, enc('x')),
          await crypto.subtle.verify(a, publicKey, s, enc('y')),
          s.byteLength > 60,
          publicKey.type,
          privateKey.usages,
          publicKey.algorithm.namedCurve,
          publicKey.algorithm.modulusLength,
        ]
        for (const f of ['spki', 'jwk']) {
          const e = await crypto.subtle.exportKey(f, publicKey)
          const k = await crypto.subtle.importKey(f, e, { name, ...p }, true, ['verify'])
          out.push(await crypto.subtle.verify(a, k, s, enc('x')), f === 'jwk' ? Object.keys(e).sort() : 0)
        }
        for (const f of ['pkcs8', 'jwk']) {
          const e = await crypto.subtle.exportKey(f, privateKey)
          const k = await crypto.subtle.importKey(f, e, { name, ...p }, true, ['sign'])
          out.push(
            await crypto.subtle.verify(a, publicKey, await crypto.subtle.sign(a, k, enc('x')), enc('x')),
            f === 'jwk' ? Object.keys(e).sort() : 0,
          )
        }
        return out
      }),
    ),
  )),
  await t(async () => {
    const { publicKey, privateKey } = await crypto.subtle.generateKey(
      { name: 'RSA-OAEP', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
      true,
      ['encrypt', 'decrypt'],
    )
    return new TextDecoder().decode(
      await crypto.subtle.decrypt('RSA-OAEP', privateKey, await crypto.subtle.encrypt('RSA-OAEP', publicKey, enc('hi'))),
    )
  }),
  await t(() => crypto.subtle.importKey('raw', enc('x'), 'Nope', false, [])).then((x) => x.split(':')[0]),
  await t(async () => {
    const z = new Blob(['hello ', 'wörld '.repeat(100)]).stream().pipeThrough(new CompressionStream('gzip'))
    const b = await new Response(z).arrayBuffer()
    const back = await new Response(new Blob([b]).stream().pipeThrough(new DecompressionStream('gzip'))).text()
    return [new Uint8Array(b)[0], back.length, back.slice(0, 9)]
  }),
  await t(async () => {
    const c = new CompressionStream('deflate-raw')
    const w = c.writable.getWriter()
    w.write(enc('abc'))
    w.close()
    const out = []
    for await (const x of c.readable) out.push(...x)
    return out.length > 0
  }),
  await t(async () => {
    const [a, b] = ReadableStream.from([1, 2, 3]).tee()
    const l = []
    for await (const x of a) l.push(x)
    for await (const x of b) l.push(x)
    return l
  }),
  await t(() => {
    const d = new TextDecoder()
    const b = enc('aä€💥b')
    let s = ''
    for (const x of b) s += d.decode(new Uint8Array([x]), { stream: true })
    return s + d.decode()
  }),
  await t(() => [
    new TextDecoder('shift_jis').decode(new Uint8Array([0x93, 0xfa, 0x96, 0x7b])),
    new TextDecoder('gbk').encoding,
    new TextDecoder('ISO-8859-15').decode(new Uint8Array([0xa4])),
  ]),
  await t(() => [
    btoa('hi'),
    atob('aGk='),
    structuredClone(new Map([[1, new Date(5)]]))
      .get(1)
      .getTime(),
  ]),
  await t(() => String(new Date(0)) + new Date(0).toTimeString()),
  await t(async () => {
    const r = Response.json({ a: 1 }, { status: 201 })
    return [r.status, r.ok, r.headers.get('content-type'), await r.json(), r.bodyUsed]
  }),
  await t(() => [
    typeof Intl.DateTimeFormat,
    'Intl' in globalThis,
    Object.keys(globalThis).includes('Event'),
    typeof DOMException,
    new DOMException('m', 'AbortError').name,
  ]),
]
