// A server that runs the handlers of webhooks with isolated-vm, a new isolate for each call: node server.mjs DIR [DATABASE].
// DIR contains trivial.js, items.js, list.js and items.json, and DATABASE is sqlite:PATH or the URL of a PostgreSQL. A process for each
// processor serves
//
//	POST /hook/{trivial|list}?token=JWT  checks the token, runs the handler and records the call in the database
//	GET  /engine/{trivial|items}?ms=N     runs the handler for N milliseconds, one call after the other: calls a second
//	GET  /calls                           the number of records in the database
import cluster from 'node:cluster'
import { createHmac, timingSafeEqual, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { availableParallelism } from 'node:os'
import ivm from 'isolated-vm'

const [dir, database] = process.argv.slice(2)
const createTable = `CREATE TABLE IF NOT EXISTS calls (id text PRIMARY KEY, token text, at text, method text, path text, status int, ms double precision, error text)`

// store returns a function that inserts records in one transaction, and one that counts them.
async function store() {
  if (!database) return { insert: async () => {}, count: async () => 0 }
  if (database.startsWith('sqlite:')) {
    const { default: Database } = await import('better-sqlite3')
    const db = new Database(database.slice(7), { timeout: 10000 })
    db.pragma('journal_mode = WAL')
    db.pragma('synchronous = NORMAL')
    db.exec(createTable)
    const one = db.prepare('INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
    return { insert: db.transaction((rows) => { for (const r of rows) one.run(r) }).immediate, count: () => db.prepare('SELECT count(*) n FROM calls').get().n }
  }
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString: database })
  if (cluster.isPrimary) await pool.query(createTable)
  return {
    count: async () => Number((await pool.query('SELECT count(*) n FROM calls')).rows[0].n),
    insert: async (rows) => {
      for (let i = 0; i < rows.length; i += 500) {
        const some = rows.slice(i, i + 500)
        const values = some.map((_, n) => `(${Array.from({ length: 8 }, (_, k) => `$${n * 8 + k + 1}`)})`)
        await pool.query(`INSERT INTO calls VALUES ${values}`, some.flat())
      }
    },
  }
}

const secret = Buffer.from('0123456789abcdef0123456789abcdef')
const tokens = new Map([['bench', { owner: 'admin' }]])

// token returns what is known of a JWT signed with HS256.
function token(text) {
  const [head, payload, signature] = `${text}`.split('.')
  if (signature === undefined) return
  const want = createHmac('sha256', secret).update(`${head}.${payload}`).digest()
  const got = Buffer.from(signature, 'base64url')
  if (got.length !== want.length || !timingSafeEqual(got, want)) return
  return tokens.get(JSON.parse(Buffer.from(payload, 'base64url')).key)
}

const answer = '[{"id":"1","name":"one"}]'
const call = new ivm.Reference(async (name, args) => { JSON.parse(args); return answer })

// program compiles a handler once; its bytecode is used by every isolate.
function program(file) {
  const source = readFileSync(`${dir}/${file}`, 'utf8').replace(/^export /gm, '') + `
;(async function (request, call) {
  const host = async (name, args) => JSON.parse(await call.apply(undefined, [name, JSON.stringify(args)], { result: { promise: true, copy: true } }))
  return JSON.stringify(await POST(JSON.parse(request), { query: (...args) => host('query', args), fetch: (...args) => host('fetch', args) }))
})`
  const isolate = new ivm.Isolate()
  const { cachedData } = isolate.compileScriptSync(source, { produceCachedData: true })
  isolate.dispose()
  return { source, cachedData }
}

const programs = { trivial: program('trivial.js'), items: program('items.js'), list: program('list.js') }
const requests = { trivial: '{"n":1}', items: readFileSync(`${dir}/items.json`, 'utf8') }

async function run({ source, cachedData }, request) {
  const isolate = new ivm.Isolate({ memoryLimit: 128 })
  try {
    const context = await isolate.createContext()
    const script = await isolate.compileScript(source, { cachedData })
    const main = await script.run(context, { reference: true })
    return await main.apply(undefined, [request, call], { timeout: 30000, result: { promise: true, copy: true } })
  } finally {
    isolate.dispose()
  }
}

const { insert, count } = await store()
let records = []
async function flush() {
  const rows = records
  records = []
  if (rows.length) await insert(rows)
}

async function hook(req, res, url, name) {
  const known = token(url.searchParams.get('token'))
  if (!known) return res.writeHead(401, { 'Content-Length': 0 }).end()
  let body = ''
  for await (const chunk of req) body += chunk
  const begin = process.hrtime.bigint()
  let status = 500, text = '', error = null
  try {
    const result = JSON.parse(await run(programs[name], body))
    status = result.status
    text = JSON.stringify(result.body)
  } catch (e) {
    error = `${e}`
  }
  records.push([randomUUID(), known.owner, new Date().toISOString(), 'POST', `/${name}`, status, Number(process.hrtime.bigint() - begin) / 1e6, error])
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }).end(text)
}

async function engine(res, url, name) {
  const end = Date.now() + Number(url.searchParams.get('ms')), begin = process.hrtime.bigint()
  let n = 0
  for (; Date.now() < end; n++) await run(programs[name], requests[name])
  res.end(`${n / (Number(process.hrtime.bigint() - begin) / 1e9)}`)
}

if (cluster.isPrimary) {
  let listening = 0
  cluster.on('listening', (_, { port }) => { if (++listening === availableParallelism()) console.log(port) })
  cluster.on('exit', () => process.exit(1))
  for (let i = 0; i < availableParallelism(); i++) cluster.fork()
  process.stdin.on('end', () => process.exit(0)).resume() // the bench has ended
} else {
  setInterval(flush, 500)
  process.on('disconnect', () => process.exit(0))
  createServer((req, res) => {
    const url = new URL(req.url, 'http://localhost')
    const [, what, name] = url.pathname.split('/')
    const done = what === 'hook' ? hook(req, res, url, name) : what === 'engine' ? engine(res, url, name) : flush().then(count).then((n) => res.end(`${n}`))
    done.catch((e) => { console.error(e); res.writeHead(500).end() })
  }).listen(0, '127.0.0.1')
}
