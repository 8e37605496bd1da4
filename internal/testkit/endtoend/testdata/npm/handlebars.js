import Handlebars from 'handlebars/dist/cjs/handlebars'

export const run = () => {
  Handlebars.registerHelper('upper', (s) => s.toUpperCase())
  const t = Handlebars.compile('{{#each items}}<li>{{upper name}} {{#if paid}}paid{{else}}open{{/if}} {{@index}}</li>{{/each}}{{{raw}}}{{> p}}')
  Handlebars.registerPartial('p', '<p>{{x}}</p>')
  return t({ items: [{ name: 'a<b', paid: true }, { name: 'c' }], raw: '<b>', x: '&' })
}
