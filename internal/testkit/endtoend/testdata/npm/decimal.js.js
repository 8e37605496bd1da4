import Decimal from 'decimal.js'

export const run = () => {
  Decimal.set({ precision: 50 })
  return [new Decimal('0.1').plus('0.2'), new Decimal(2).sqrt(), Decimal.exp(1), new Decimal('123.456').toFraction(), new Decimal('1e500').times(3).toString(), new Decimal(10).div(3).toFixed(20), Decimal.random().lt(1), Decimal.acos(-1)]
}
