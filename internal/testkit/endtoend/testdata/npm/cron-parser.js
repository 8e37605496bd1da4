import { CronExpressionParser } from 'cron-parser'

export const run = () => {
  const i = CronExpressionParser.parse('30 2 * * *', { currentDate: '2026-03-28T00:00:00Z', tz: 'Europe/Berlin' })
  const j = CronExpressionParser.parse('0 9 * * 1-5', { currentDate: '2026-11-26T20:00:00Z', tz: 'America/New_York' })
  return [[1, 2, 3].map(() => i.next().toISOString()), [1, 2].map(() => j.next().toString()), j.stringify()]
}
