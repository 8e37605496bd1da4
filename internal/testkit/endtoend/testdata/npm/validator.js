import validator from 'validator'

export const run = () => [
  validator.isEmail('foo@bar.com'), validator.isEmail('foo@'), validator.isIBAN('DE89370400440532013000'), validator.isCreditCard('4111111111111111'), validator.isURL('https://example.com/x?y=1'), validator.isMobilePhone('+4915112345678', 'de-DE'),
  validator.escape('<a href="x">'), validator.normalizeEmail('Some.Name+x@GMAIL.com'), validator.isISO8601('2026-11-26T10:00:00Z', { strict: true }), validator.isCurrency('$1,234.50'), validator.isAlpha('äöü', 'de-DE'), validator.isUUID('6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b'),
]
