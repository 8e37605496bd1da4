import { from, interval, of, timer, lastValueFrom, firstValueFrom, Subject } from 'rxjs'
import { map, filter, toArray, take, mergeMap, debounceTime, delay, scan, timeout, catchError } from 'rxjs/operators'

export const run = async () => [
  await lastValueFrom(from([1, 2, 3, 4]).pipe(filter((n) => n % 2 === 0), map((n) => n * 10), toArray())), await lastValueFrom(interval(1).pipe(take(3), scan((a, b) => a + b, 0))),
  await lastValueFrom(of(1, 2).pipe(mergeMap((n) => of(n).pipe(delay(90 - 40 * n))), toArray())), await firstValueFrom(timer(50).pipe(timeout(1), catchError((e) => of(e.name)))),
  await new Promise((resolve) => { const s = new Subject(); s.pipe(debounceTime(2)).subscribe(resolve); s.next(1); s.next(2) }),
]
