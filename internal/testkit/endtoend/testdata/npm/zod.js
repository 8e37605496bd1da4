import { z } from 'zod'

const order = z.object({ id: z.uuid(), total: z.number().positive(), tags: z.array(z.string()).default([]), at: z.iso.datetime() })

export const run = () => {
  const bad = order.safeParse({ id: 'x', total: -1, at: 'yesterday' })
  return [
    order.parse({ id: '0190163d-8694-739b-aea5-966c26f8ad91', total: 5, at: '2026-11-26T10:00:00Z' }),
    bad.error.issues.map((i) => [i.path, i.code, i.message]),
    z.toJSONSchema(order),
    z.coerce.date().parse('2026-01-02').toISOString(),
  ]
}
