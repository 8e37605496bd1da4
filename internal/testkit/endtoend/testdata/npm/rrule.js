import { RRule, RRuleSet, rrulestr } from 'rrule'

export const run = () => {
  const rule = new RRule({ freq: RRule.WEEKLY, interval: 2, byweekday: [RRule.MO, RRule.FR], dtstart: new Date(Date.UTC(2026, 1, 1, 10, 30)), count: 5 })
  return [rule.all(), rule.toString(), rule.toText(), rrulestr('DTSTART:20261126T100000Z\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=3').all()]
}
