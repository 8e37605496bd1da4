import { produce, enableMapSet, enablePatches, produceWithPatches } from 'immer'

enableMapSet()
enablePatches()

export const run = () => {
  const base = { list: [1, 2], deep: { a: 1 }, map: new Map([['k', 1]]) }
  const next = produce(base, (d) => { d.list.push(3); d.map.set('k', 2) })
  return [next.list, base.list, next.deep === base.deep, [...next.map], Object.isFrozen(next), produceWithPatches({ x: 1 }, (d) => { d.x++ })]
}
