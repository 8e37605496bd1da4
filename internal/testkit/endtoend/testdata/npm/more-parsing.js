import ical from 'ical.js'
import { load } from 'cheerio/slim'
import TurndownService from 'turndown'
import mime from 'mime'
import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { strToU8, strFromU8, gzipSync, gunzipSync, zipSync, unzipSync } from 'fflate'
import he from 'he'
import Fuse from 'fuse.js'
import { diffLines } from 'diff'
import { JSONPath } from 'jsonpath-plus'

export const run = () => [
  new ical.Component(ical.parse('BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\nDTSTART:20261126T100000Z\nEND:VEVENT\nEND:VCALENDAR')).getFirstSubcomponent('vevent').getFirstPropertyValue('summary'),
  load('<ul><li>a<li>b</ul>')('li').map((i, e) => i).get(), typeof TurndownService, mime.getType('a.png'), parsePhoneNumberFromString('+4915112345678').formatInternational(),
  strFromU8(gunzipSync(gzipSync(strToU8('hällo')))), Object.keys(unzipSync(zipSync({ 'a.txt': strToU8('x') }))), he.encode('<ä>'), new Fuse(['apple', 'banana'], {}).search('aple').map((r) => r.item),
  diffLines('a\nb\n', 'a\nc\n').length, JSONPath({ path: '$.a[*].b', json: { a: [{ b: 1 }, { b: 2 }] } }),
]
