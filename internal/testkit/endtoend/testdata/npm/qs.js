import qs from 'qs'

export const run = () => [qs.parse('a[b][c]=d&e[]=1&e[]=2&f=%E4%F6', { charset: 'iso-8859-1' }), qs.stringify({ a: { b: ['c', 'd'] }, e: new Date(0), f: null, g: 'ä ö' }), qs.parse('utf8=%26%2310003%3B&a=%C3%B8', { charsetSentinel: true, charset: 'iso-8859-1' })]
