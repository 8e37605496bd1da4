import * as jose from 'jose'

const secret = new TextEncoder().encode('a secret of 32 bytes or more, yes')

export const run = async () => {
  const jwt = await new jose.SignJWT({ 'urn:example:claim': true }).setProtectedHeader({ alg: 'HS256' }).setIssuedAt(1795600000)
    .setIssuer('urn:example:issuer').setAudience('urn:example:audience').setExpirationTime(4102444800).sign(secret)
  const { payload, protectedHeader } = await jose.jwtVerify(jwt, secret, { issuer: 'urn:example:issuer', audience: 'urn:example:audience' })
  const wrong = await jose.jwtVerify(jwt, new TextEncoder().encode('another secret of 32 bytes or more')).catch((e) => e.code)
  const es = await jose.generateKeyPair('ES256', { extractable: true }), rs = await jose.generateKeyPair('RS256', { extractable: true })
  const signed = []
  for (const [alg, pair] of [['ES256', es], ['RS256', rs]]) {
    const token = await new jose.SignJWT({ a: 1 }).setProtectedHeader({ alg }).sign(pair.privateKey)
    const key = await jose.importJWK(await jose.exportJWK(pair.publicKey), alg)
    const pem = await jose.importSPKI(await jose.exportSPKI(pair.publicKey), alg)
    signed.push((await jose.jwtVerify(token, key)).payload, (await jose.jwtVerify(token, pem)).payload.a)
  }
  const jwe = await new jose.EncryptJWT({ b: 2 }).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(secret.slice(0, 32))
  return [jwt, payload, protectedHeader, wrong, signed, (await jose.jwtDecrypt(jwe, secret.slice(0, 32))).payload, jose.decodeJwt(jwt).iss]
}
