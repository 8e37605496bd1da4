import { DateTime, Duration, Interval, Info } from 'luxon'

export const run = () => {
  const t = DateTime.fromISO('2026-11-01T00:30:00', { zone: 'America/New_York' })
  return [
    t.plus({ hours: 1 }).toISO(), t.plus({ hours: 2 }).toISO(), t.setZone('Asia/Kathmandu').toString(), t.toFormat("cccc d LLLL yyyy HH:mm ZZZZ 'in' z"), t.toLocaleString(DateTime.DATETIME_FULL),
    t.toLocaleString(DateTime.DATE_MED_WITH_WEEKDAY), t.setZone('utc').toLocaleString(DateTime.TIME_24_WITH_SECONDS), t.offsetNameLong, DateTime.fromFormat('Nov 26 2026 9:05 PM', 'LLL d yyyy h:mm a', { zone: 'Europe/Berlin' }).toISO(),
    Duration.fromObject({ hours: 49, minutes: 5 }).normalize().toHuman(), Interval.after(t, { days: 2 }).length('hours'), t.isInDST, Info.months('short'), DateTime.fromISO('2026-02-30').invalidReason, t.weekNumber,
    DateTime.fromISO('2026-11-26', { zone: 'utc' }).toRelative({ base: DateTime.fromISO('2026-11-20', { zone: 'utc' }) }), Info.isValidIANAZone('Mars/Base'), Info.weekdays('long'),
  ]
}
