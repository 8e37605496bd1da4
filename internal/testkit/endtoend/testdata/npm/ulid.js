import { ulid, decodeTime, monotonicFactory } from 'ulid'

export const run = () => {
  const next = monotonicFactory()
  const all = [next(1000), next(1000), next(1000)]
  return [ulid(1469918176385).slice(0, 10), decodeTime('01ARYZ6S41TSV4RRFFQ69G5FAV'), ulid().length, all.toString() === all.toSorted().toString()]
}
