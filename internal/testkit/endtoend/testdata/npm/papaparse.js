import Papa from 'papaparse'

export const run = () => [
  Papa.parse('a;b\n1;"x;y"\n2;"q""q"\n', { header: true, dynamicTyping: true }), Papa.unparse([{ a: 1, b: 'x,y' }, { a: null, b: 'q"q' }]), Papa.parse('a\tb', {}).meta.delimiter,
]
