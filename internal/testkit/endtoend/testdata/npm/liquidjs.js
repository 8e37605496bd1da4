import { Liquid } from 'liquidjs'

export const run = () => new Liquid().parseAndRender('{% for i in items %}{{ i | upcase }}{% unless forloop.last %}, {% endunless %}{% endfor %} {{ "2026-11-26T10:00:00Z" | date: "%a, %d %b %y %H:%M", "America/New_York" }} {{ 1234.5 | round }} {{ "a,b" | split: "," | join: "-" }}', { items: ['x', 'y'] })
