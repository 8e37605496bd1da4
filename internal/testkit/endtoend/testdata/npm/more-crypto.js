import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, randomBytes } from '@noble/hashes/utils.js'
import CryptoJS from 'crypto-js'
import { Webhook } from 'standardwebhooks'
import jsSHA from 'jssha'

export const run = () => {
  const hook = new Webhook('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
  return [
    bytesToHex(sha256(new TextEncoder().encode('abc'))), randomBytes(8).length, CryptoJS.HmacSHA256('a', 'k').toString(), CryptoJS.AES.decrypt(CryptoJS.AES.encrypt('text', 'pass').toString(), 'pass').toString(CryptoJS.enc.Utf8),
    hook.sign('msg_1', new Date(1614265330000), '{}'), new jsSHA('SHA3-256', 'TEXT').update('x').getHash('HEX'),
  ]
}
