import slugify from 'slugify'

export const run = () => [slugify('Über Straße & Žluťoučký kůň', { lower: true }), slugify('some string!', '_'), slugify('Ärger', { locale: 'de', strict: true }), slugify('unicode ♥ is ☢')]
