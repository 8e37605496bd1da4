import { XMLParser, XMLBuilder, XMLValidator } from 'fast-xml-parser'

const xml = '<?xml version="1.0"?><order id="5"><item n="1">A &amp; B</item><item n="2"><![CDATA[<c>]]></item><total>12.50</total></order>'

export const run = () => {
  const o = new XMLParser({ ignoreAttributes: false }).parse(xml)
  return [o, new XMLBuilder({ ignoreAttributes: false, format: true }).build(o), XMLValidator.validate('<a><b></a>')]
}
