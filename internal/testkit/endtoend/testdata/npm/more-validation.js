import * as yup from 'yup'
import * as v from 'valibot'

export const run = async () => [
  await yup.object({ a: yup.number().required(), d: yup.date() }).validate({ a: '5', d: '2026-11-26T00:00:00Z' }), await yup.string().email().validate('x').catch((e) => e.message),
  v.safeParse(v.object({ e: v.pipe(v.string(), v.email()) }), { e: 'x' }).issues.map((i) => i.message),
]
