import { parse, stringify, parseDocument } from 'yaml'

export const run = () => [
  parse('a: &x {b: 1, c: [2, 3]}\nd: *x\ne: |\n  two\n  lines\nf: 2026-11-26\n'), stringify({ list: [1, { x: 'y: z' }], text: 'a\nb' }), parseDocument('a: [1').errors.map((e) => [e.code, e.linePos]),
]
