import { formatInTimeZone, fromZonedTime, toZonedTime, getTimezoneOffset } from 'date-fns-tz'

const day = new Date('2026-07-01T12:00:00Z')

export const run = () => [
  formatInTimeZone(day, 'America/New_York', 'yyyy-MM-dd HH:mm:ssXXX zzz'), formatInTimeZone(day, 'Asia/Tokyo', 'PPpp zzzz'), fromZonedTime('2026-11-01 01:30:00', 'America/New_York').toISOString(),
  toZonedTime(day, 'Europe/London').toISOString(), getTimezoneOffset('Australia/Lord_Howe', day),
]
