// crypto.subtle. A key is its bytes, DER or raw ones, which scripts see only by exportKey; all of it is worked out in Go.
(function (native, shared) {
  'use strict'
  const { bytesOf, stringify, parse, define, events } = shared
  const fail = (name, message) => { throw new (events().DOMException)(message, name) }
  const bytes = (data, what = 'the data') => {
    if (!(data instanceof ArrayBuffer) && !ArrayBuffer.isView(data)) throw new TypeError(`${what} must be an ArrayBuffer or a view of one`)
    return bytesOf(data, what)
  }
  const trying = (name, f) => {
    try {
      return f()
    } catch (e) {
      return fail(name, e.message)
    }
  }
  const named = (algorithm) => {
    const a = typeof algorithm === 'string' ? { name: algorithm } : algorithm
    if (a === null || typeof a !== 'object') throw new TypeError('the algorithm must be a string or an object with a name')
    const name = Object.keys(kinds).find((k) => k.toLowerCase() === `${a.name}`.toLowerCase())
    if (!name) fail('NotSupportedError', `the algorithm ${a.name} is not supported`)
    return { ...a, name }
  }
  const hashName = (hash) => {
    const name = `${(typeof hash === 'object' && hash !== null ? hash.name : hash) ?? ''}`.toUpperCase()
    if (!['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'].includes(name)) fail('NotSupportedError', `the hash ${name} is not supported: use SHA-1, SHA-256, SHA-384 or SHA-512`)
    return name
  }
  const kinds = {
    HMAC: { secret: ['sign', 'verify'], hash: true }, 'AES-GCM': { secret: ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'], aes: true }, 'AES-CBC': { secret: ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'], aes: true },
    'RSASSA-PKCS1-v1_5': { kty: 'RSA', public: ['verify'], private: ['sign'], hash: true }, 'RSA-PSS': { kty: 'RSA', public: ['verify'], private: ['sign'], hash: true },
    'RSA-OAEP': { kty: 'RSA', public: ['encrypt', 'wrapKey'], private: ['decrypt', 'unwrapKey'], hash: true }, ECDSA: { kty: 'EC', public: ['verify'], private: ['sign'], curve: true },
    Ed25519: { kty: 'OKP', public: ['verify'], private: ['sign'] }, PBKDF2: { secret: ['deriveBits', 'deriveKey'] }, HKDF: { secret: ['deriveBits', 'deriveKey'] },
  }
  const make = Symbol('make')
  const raws = new WeakMap()
  class CryptoKey {
    constructor(secret, type, extractable, algorithm, usages) {
      if (secret !== make) throw new TypeError('Illegal constructor')
      for (const [name, value] of Object.entries({ type, extractable, algorithm, usages })) Object.defineProperty(this, name, { value, enumerable: true })
    }
    get [Symbol.toStringTag]() { return 'CryptoKey' }
  }
  const keyOf = (raw, type, extractable, algorithm, usages) => {
    const key = new CryptoKey(make, type, Boolean(extractable), algorithm, usages)
    raws.set(key, new Uint8Array(raw))
    return key
  }
  const rawOf = (key, algorithm, usage) => {
    const raw = raws.get(key)
    if (!raw) throw new TypeError('the key must be a CryptoKey')
    if (algorithm && key.algorithm.name !== algorithm.name) fail('InvalidAccessError', `the key is one for ${key.algorithm.name}, not for ${algorithm.name}`)
    if (usage && !key.usages.includes(usage)) fail('InvalidAccessError', `the key may not be used to ${usage}`)
    return raw
  }
  const usagesOf = (usages, allowed, type) => {
    const all = [...new Set(Array.from(usages ?? [], String))]
    const wrong = all.find((u) => !allowed.includes(u))
    if (wrong) fail('SyntaxError', `a ${type} key of this algorithm cannot be used to ${wrong}`)
    if (!all.length && type !== 'public') fail('SyntaxError', `a ${type} key needs usages`)
    return all
  }
  const hashBytes = { 'SHA-1': 64, 'SHA-256': 64, 'SHA-384': 128, 'SHA-512': 128 }
  const secretKey = (raw, a, kind, extractable, usages) => {
    const algorithm = { name: a.name }
    if (kind.hash) Object.assign(algorithm, { hash: { name: hashName(a.hash) }, length: raw.length * 8 })
    if (kind.aes) {
      if (![16, 24, 32].includes(raw.length)) fail('DataError', 'a key for AES has 128, 192 or 256 bits')
      algorithm.length = raw.length * 8
    }
    if (a.name === 'HMAC' && !raw.length) fail('DataError', 'a key for HMAC cannot be empty')
    return keyOf(raw, 'secret', extractable, algorithm, usagesOf(usages, kind.secret, 'secret'))
  }
  const pairKey = ([type, info, der], a, kind, extractable, usages) => {
    const { bits, exponent, curve } = parse(info)
    const algorithm = { name: a.name }
    if (kind.kty === 'RSA') Object.assign(algorithm, { modulusLength: bits, publicExponent: new Uint8Array(native.decode(exponent, 'base64')), hash: { name: hashName(a.hash) } })
    if (kind.curve) {
      if (curve !== a.namedCurve) fail('DataError', `the key is of the curve ${curve}, not ${a.namedCurve}`)
      algorithm.namedCurve = curve
    }
    return keyOf(der, type, extractable, algorithm, usagesOf(usages, kind[type], type))
  }
  const base64url = (raw) => native.encode(raw, 'base64url')
  const secretAlgorithm = (key) => (key.algorithm.name === 'HMAC' ? `HS${key.algorithm.hash.name.slice(4)}` : `A${key.algorithm.length}${key.algorithm.name.slice(4)}`)
  const subtle = {
    async digest(algorithm, data) { return native.hash(hashName(algorithm), bytes(data)) },
    async importKey(format, data, algorithm, extractable, usages) {
      const a = named(algorithm), kind = kinds[a.name]
      if (kind.secret) {
        if (format === 'jwk') {
          if (data?.kty !== 'oct' || typeof data.k !== 'string') fail('DataError', 'a JSON Web Key of a secret has kty "oct" and k')
          return secretKey(new Uint8Array(trying('DataError', () => native.decode(data.k, 'base64url'))), a, kind, extractable, usages)
        }
        if (format !== 'raw') fail('NotSupportedError', `a secret key is imported as raw or jwk, not ${format}`)
        return secretKey(bytes(data, 'the key').slice(), a, kind, extractable, usages)
      }
      const source = format === 'jwk' ? stringify(data) : bytes(data, 'the key')
      return pairKey(trying('DataError', () => native.importKey(`${format}`, source, kind.kty, `${a.namedCurve ?? ''}`)), a, kind, extractable, usages)
    },
    async exportKey(format, key) {
      const raw = rawOf(key)
      if (!key.extractable) fail('InvalidAccessError', 'the key is not extractable')
      const jwk = { key_ops: [...key.usages], ext: true }
      if (key.type === 'secret') {
        if (format === 'jwk') return { ...jwk, kty: 'oct', k: base64url(raw), alg: secretAlgorithm(key) }
        if (format !== 'raw') fail('NotSupportedError', `a secret key is exported as raw or jwk, not ${format}`)
        return raw.slice().buffer
      }
      const out = trying(format === 'jwk' || format === 'raw' || format === 'spki' || format === 'pkcs8' ? 'InvalidAccessError' : 'NotSupportedError', () => native.exportKey(`${format}`, key.type, raw))
      if (format !== 'jwk') return out
      const name = { 'RSASSA-PKCS1-v1_5': 'RS', 'RSA-PSS': 'PS', 'RSA-OAEP': 'RSA-OAEP-' }[key.algorithm.name]
      return { ...jwk, ...parse(out), ...(name && { alg: name + key.algorithm.hash.name.slice(4) }) }
    },
    async generateKey(algorithm, extractable, usages) {
      const a = named(algorithm), kind = kinds[a.name]
      if (a.name === 'PBKDF2' || a.name === 'HKDF') fail('NotSupportedError', `keys for ${a.name} are imported`)
      if (kind.secret) {
        const size = a.name === 'HMAC' ? (a.length ?? hashBytes[hashName(a.hash)] * 8) / 8 : Number(a.length) / 8
        if (!Number.isInteger(size) || size < 1 || size > 1024) fail('OperationError', 'the length of the key is not supported')
        return secretKey(new Uint8Array(native.random(size)), a, kind, extractable, usages)
      }
      const all = Array.from(usages ?? [], String)
      usagesOf(all, [...kind.public, ...kind.private], 'private')
      if (kind.kty === 'RSA' && a.publicExponent && native.encode(bytes(a.publicExponent), 'hex') !== '010001') fail('OperationError', 'the public exponent must be 65537')
      const [priv, pub, info] = trying('OperationError', () => native.generateKey(kind.kty, `${kind.kty === 'RSA' ? a.modulusLength : a.namedCurve ?? ''}`))
      return {
        publicKey: pairKey(['public', info, pub], a, kind, true, all.filter((u) => kind.public.includes(u))), privateKey: pairKey(['private', info, priv], a, kind, extractable, all.filter((u) => kind.private.includes(u))),
      }
    },
    async sign(algorithm, key, data) {
      const a = named(algorithm), raw = rawOf(key, a, 'sign'), hash = (a.name === 'ECDSA' ? hashName(a.hash) : key.algorithm.hash?.name) ?? ''
      if (a.name === 'HMAC') return native.hmac(hash, raw, bytes(data))
      return trying('OperationError', () => native.sign(a.name, hash, raw, bytes(data), Number(a.saltLength ?? 0)))
    },
    async verify(algorithm, key, signature, data) {
      const a = named(algorithm), raw = rawOf(key, a, 'verify'), hash = (a.name === 'ECDSA' ? hashName(a.hash) : key.algorithm.hash?.name) ?? ''
      if (a.name === 'HMAC') return native.equal(new Uint8Array(native.hmac(hash, raw, bytes(data))), bytes(signature, 'the signature'))
      return trying('OperationError', () => native.verifyWith(a.name, hash, raw, bytes(signature, 'the signature'), bytes(data), Number(a.saltLength ?? 0)))
    },
    async encrypt(algorithm, key, data) { return crypt(algorithm, key, data, 'encrypt') },
    async decrypt(algorithm, key, data) { return crypt(algorithm, key, data, 'decrypt') },
    async deriveBits(algorithm, key, length) {
      const a = named(algorithm)
      return derive(a, rawOf(key, a, 'deriveBits'), length)
    },
    async deriveKey(algorithm, key, made, extractable, usages) {
      const a = named(algorithm), m = named(made), kind = kinds[m.name]
      if (!kind.secret) fail('NotSupportedError', `no key for ${m.name} can be derived`)
      const length = m.length ?? (m.name === 'HMAC' ? hashBytes[hashName(m.hash)] * 8 : 256)
      return secretKey(new Uint8Array(derive(a, rawOf(key, a, 'deriveKey'), length)), m, kind, extractable, usages)
    },
    async wrapKey(format, key, wrapping, algorithm) {
      const a = named(algorithm), out = await subtle.exportKey(format, key)
      return crypt(a, wrapping, format === 'jwk' ? new Uint8Array(native.utf8(stringify(out))) : out, 'wrapKey')
    },
    async unwrapKey(format, wrapped, key, algorithm, unwrapped, extractable, usages) {
      const raw = crypt(algorithm, key, wrapped, 'unwrapKey')
      return subtle.importKey(format, format === 'jwk' ? parse(native.text(new Uint8Array(raw), 'utf-8', true, false)) : raw, unwrapped, extractable, usages)
    },
  }
  const derive = (a, raw, length) => {
    if (a.name !== 'PBKDF2' && a.name !== 'HKDF') fail('NotSupportedError', `${a.name} derives nothing`)
    if (!Number.isInteger(length) || length <= 0 || length % 8 || length > 65536) fail('OperationError', 'the length must be a multiple of 8 bits')
    const salt = bytes(a.salt, 'the salt')
    return trying('OperationError', () => native.derive(a.name, hashName(a.hash), raw, salt, a.name === 'HKDF' ? bytes(a.info, 'info') : new Uint8Array(0), Number(a.iterations ?? 1), length / 8))
  }
  const crypt = (algorithm, key, data, usage) => {
    const a = named(algorithm), raw = rawOf(key, a, usage), seal = usage === 'encrypt' || usage === 'wrapKey'
    if (a.name === 'RSA-OAEP') return trying('OperationError', () => native.oaep(seal, key.algorithm.hash.name, raw, bytes(data), a.label === undefined ? new Uint8Array(0) : bytes(a.label)))
    if (a.name !== 'AES-GCM' && a.name !== 'AES-CBC') fail('NotSupportedError', `${a.name} encrypts nothing`)
    const iv = bytes(a.iv, 'iv'), more = a.additionalData === undefined ? new Uint8Array(0) : bytes(a.additionalData)
    return trying('OperationError', () => native.aes(a.name, seal, raw, iv, bytes(data), more, Number(a.tagLength ?? 128)))
  }
  class SubtleCrypto {}
  define(SubtleCrypto.prototype, subtle)
  return { subtle: new SubtleCrypto(), CryptoKey, SubtleCrypto }
})
