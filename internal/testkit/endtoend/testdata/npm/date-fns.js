import { format, formatDistance, parse, addMonths, differenceInBusinessDays, formatRelative, startOfWeek, intlFormat } from 'date-fns'
import { de, fr, ja } from 'date-fns/locale'

const day = new Date(Date.UTC(2026, 10, 26, 13, 5, 9))

export const run = () => [
  format(day, 'PPPPpppp', { locale: de }), format(day, "do MMMM yyyy 'à' HH:mm", { locale: fr }), format(day, 'PPPP', { locale: ja }), formatDistance(day, addMonths(day, 3), { locale: de, addSuffix: true }),
  parse('26 novembre 2026', 'd MMMM yyyy', new Date(0), { locale: fr }).toISOString(), differenceInBusinessDays(addMonths(day, 1), day), formatRelative(day, day, { locale: de }),
  startOfWeek(day, { locale: de }).toISOString(), intlFormat(day, { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }, { locale: 'en-US' }),
]
