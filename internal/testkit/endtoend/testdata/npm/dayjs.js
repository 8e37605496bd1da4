import dayjs from 'dayjs'
import utc from 'dayjs/plugin/utc'
import timezone from 'dayjs/plugin/timezone'
import 'dayjs/locale/de'

dayjs.extend(utc)
dayjs.extend(timezone)

export const run = () => [
  dayjs.utc('2026-03-29T00:30:00Z').tz('Europe/Berlin').format('YYYY-MM-DD HH:mm:ss Z'),
  dayjs.utc('2026-03-29T01:30:00Z').tz('Europe/Berlin').format(),
  dayjs.tz('2026-11-01 01:30', 'America/New_York').toISOString(),
  dayjs.tz('2026-07-01 12:00', 'Australia/Lord_Howe').utcOffset(),
  dayjs.utc('2026-07-01T12:00:00Z').tz('Asia/Kolkata').format('z'),
  dayjs.utc('2026-01-31').add(1, 'month').locale('de').format('dddd, D. MMMM YYYY'),
]
