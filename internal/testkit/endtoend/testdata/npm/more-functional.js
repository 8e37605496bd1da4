import * as R from 'ramda'
import { EventEmitter } from 'eventemitter3'
import mitt from 'mitt'
import pLimit from 'p-limit'
import pRetry from 'p-retry'
import Big from 'big.js'
import BigNumber from 'bignumber.js'
import currency from 'currency.js'
import numeral from 'numeral'
import pluralize from 'pluralize'
import * as math from 'mathjs/number'

export const run = async () => {
  const limit = pLimit(2), seen = [], bus = mitt(), emitter = new EventEmitter()
  bus.on('a', (x) => seen.push(x))
  bus.emit('a', 1)
  emitter.on('b', (x) => seen.push(x))
  emitter.emit('b', 2)
  let tries = 0
  return [
    R.pipe(R.map(R.inc), R.filter(R.lt(2)))([1, 2, 3]), seen, await Promise.all([3, 1, 2].map((n) => limit(async () => n))), await pRetry(async () => { if (++tries < 3) throw new Error('x'); return tries }, { minTimeout: 1 }),
    new Big('0.1').plus('0.2').toString(), new BigNumber(1234567.891).toFormat(2), currency('1,234.50').add(1).format(), numeral(1234567.8).format('0,0.00'), pluralize('box', 2), math.evaluate('sqrt(16) + 2^3'),
  ]
}
