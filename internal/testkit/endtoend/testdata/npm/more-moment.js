import moment from 'moment'

export const run = () => [
  moment.utc('2026-11-26T10:00:00Z').format('LLLL'), moment.utc('2026-11-26').add(1, 'month').toISOString(), moment.duration(90, 'minutes').humanize(), moment.utc('26.11.2026', 'DD.MM.YYYY').week(), moment.parseZone('2026-11-26T10:00:00+05:30').utcOffset(),
]
