import _ from 'lodash'

export const run = () => [
  _.groupBy(['one', 'two', 'three'], 'length'), _.chunk([1, 2, 3, 4, 5], 2), _.camelCase('Foo Bar-baz'), _.deburr('déjà vu'), _.merge({ a: { b: 1 } }, { a: { c: 2 } }),
  _.template('hello <%= user %>!')({ user: 'mia' }), _.orderBy([{ a: 2 }, { a: 1 }], 'a'), _.isEqual(new Map([[1, 2]]), new Map([[1, 2]])), _.words('fred, barney & pebbles'),
  _.cloneDeep({ d: new Date(5), r: /x/g, s: new Set([1]) }).d.getTime(), _.debounce(() => 1, 10) instanceof Function, _.pad('abc', 8, '_-'),
]
