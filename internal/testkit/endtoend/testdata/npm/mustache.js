import Mustache from 'mustache'

export const run = () => Mustache.render('{{#people}}{{name}} ({{{raw}}}){{^last}}, {{/last}}{{/people}}{{>p}}', { people: [{ name: '<a>', raw: '<b>' }, { name: 'c', last: true }], x: 1 }, { p: '!{{x}}' })
