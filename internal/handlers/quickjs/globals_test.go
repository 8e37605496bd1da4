package quickjs_test

import (
	"encoding/json"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

func (s *suite) globals(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct{ statements, want string }{
		// Text and bytes.
		{"return Array.from(new TextEncoder().encode('aä€💥'))", `[97,195,164,226,130,172,240,159,146,165]`},
		{"return new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97, 0xc3, 0xa4, 0xff, 98]))", `"aä�b"`},
		{"return new TextDecoder('utf-16le').decode(new Uint16Array([0x61, 0x20ac]))", `"a€"`},
		{"return new TextDecoder('latin1').decode(new Uint8Array([0xe4, 0x80]).buffer)", `"ä€"`},
		{
			"try { new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([0xff])) } catch (e) { return " +
				"e.name }",
			`"TypeError"`,
		},
		{"try { new TextDecoder('none') } catch (e) { return e.name }", `"RangeError"`},
		{"return new TextDecoder().decode(new Uint8Array([1, 98, 99, 2]).subarray(1, 3))", `"bc"`},
		{"return [btoa('a\\xff'), atob('Yf8='), atob(' Y f8 ')]", `["Yf8=","aÿ","aÿ"]`},
		{"try { btoa('€') } catch (e) { return 'refused' }", `"refused"`},
		{"try { atob('*') } catch (e) { return 'refused' }", `"refused"`},
		{"return [base64Encode('ä?>'), base64UrlEncode('ä?>'), base64Decode('w6Q/Pg=='), " +
			"base64UrlDecode('w6Q_Pg'), Array.from(base64Decode('/w==', 'bytes'))]",
			`["w6Q/Pg==","w6Q_Pg","ä?>","ä?>",[255]]`},
		// URLs.
		{"const u = new URL('../x y?q=ä#f', 'https://jo:pw@EXAMPLE.com:443/a/b/c'); return [u.href, u.origin, " +
			"u.host, u.username, u.pathname, u.search, u.hash]",
			`["https://jo:pw@example.com/a/x%20y?q=%C3%A4#f","https://example.com","example.com","jo","/a/x%20y","?q=%C3%A4","#f"]`},
		{"const u = new URL('http://a/'); u.searchParams.append('k', 'ä &'); u.port = '81'; u.hash = 'z'; return " +
			"[`${u}`, u.search, JSON.stringify(u)]",
			`["http://a:81/?k=%C3%A4+%26#z","?k=%C3%A4+%26","\"http://a:81/?k=%C3%A4+%26#z\""]`},
		{
			"const u = new URL('http://a/?x=1'); const p = u.searchParams; u.search = '?y=2'; return [p.get('x'), " +
				"p.get('y')]",
			`[null,"2"]`,
		},
		{
			"try { new URL('nothing') } catch (e) { return [e.name, URL.canParse('nothing'), " +
				"URL.parse('nothing'), URL.canParse('a:b')] }",
			`["TypeError",false,null,true]`,
		},
		{"return new URL('http://bücher.example/').hostname", `"xn--bcher-kva.example"`},
		{"const p = new URLSearchParams('?a=1&b=%C3%A4+x&a=2&c'); p.delete('c'); p.set('b', '~'); return " +
			"[p.get('a'), p.getAll('a'), [...p], `${p}`, p.size, p.has('a', '2'), p.get('z')]",
			`["1",["1","2"],[["a","1"],["b","~"],["a","2"]],"a=1&b=%7E&a=2",3,true,null]`},
		{
			"return [`${new URLSearchParams({a: 1, b: [2]})}`, `${new URLSearchParams([['x', 'y']])}`, `${new " +
				"URLSearchParams(new URLSearchParams('q=1'))}`]",
			`["a=1&b=2","x=y","q=1"]`,
		},
		// structuredClone.
		{"const o = {d: new Date(5), m: new Map([[1, {x: 1}]]), s: new Set([2]), r: /x/gi, b: new Uint8Array([1, " +
			"2]), e: new RangeError('bad'), u: undefined, n: 1n}; o.self = o\n" +
			"const c = structuredClone(o); return [c !== o, c.self === c, c.d instanceof Date, c.m.get(1).x, " +
			"c.m.get(1) !== o.m.get(1), c.s.has(2), `${c.r}`, [...c.b], c.b.buffer !== o.b.buffer, c.e instanceof " +
			"RangeError, c.e.message, 'u' in c, `${c.n}`]",
			`[true,true,true,1,true,true,"/x/gi",[1,2],true,true,"bad",true,"1"]`},
		{"try { structuredClone(() => 1) } catch (e) { return e.name }", `"DataCloneError"`},
		{
			"const c = structuredClone(JSON.parse('{\"__proto__\": {\"x\": 1}}')); return [Object.keys(c), c.x " +
				"=== undefined]",
			`[["__proto__"],true]`,
		},
		// Cryptography: FIPS 180 and RFC 4231.
		{"return crypto.hash('sha256', 'abc')", `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`},
		{
			"return crypto.hmac('SHA-256', 'Jefe', 'what do ya want for nothing?')",
			`"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"`,
		},
		{
			"return [crypto.hash('sha1', '', 'base64'), crypto.hash('md5', new Uint8Array(0)), " +
				"crypto.hash('sha512', 'x', 'bytes').length]",
			`["2jmj7l5rSw0yVb/vlWAYkK/YBwk=","d41d8cd98f00b204e9800998ecf8427e",64]`,
		},
		{"const s = crypto.hmac('sha256', 'k', 'b'), b = crypto.hmac('sha256', 'k', 'b', 'base64'); return [s, " +
			"'sha256=' + s, s.toUpperCase(), b, s.slice(1) + '0', '', undefined].map(x => " +
			"crypto.verifyHmac('sha256', 'k', 'b', x))",
			`[true,true,true,true,false,false,false]`},
		{
			"return [crypto.timingSafeEqual('a', 'a'), crypto.timingSafeEqual('a', 'b'), " +
				"crypto.timingSafeEqual('a', 'aa')]",
			`[true,false,false]`,
		},
		{
			"return [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), crypto.randomBytes(5).length, crypto.getRandomValues(new Uint16Array(3)).length]",
			`[true,5,3]`,
		},
		{"try { crypto.hash('none', '') } catch (e) { return e.name }", `"TypeError"`},
		// Timers.
		{"const seen = []; setTimeout(x => seen.push(x), 5, 'b'); setTimeout(() => seen.push('a'), 1); const i = " +
			"setInterval(() => seen.push('i'), 2); queueMicrotask(() => seen.push('m'))\n" +
			"clearTimeout(setTimeout(() => seen.push('never'), 1)); await new Promise(r => setTimeout(r, 20)); " +
			"clearInterval(i); return [seen[0], seen.includes('a'), seen.includes('b'), seen.includes('i'), " +
			"seen.includes('never')]",
			`["m",true,true,true,false]`},
		{"setInterval(() => {}, 1); return performance.now() >= 0", `true`}, // a timer does not keep the script running
		{
			"return [new Date(0).getTimezoneOffset(), new Date(2020, 6, 1).toISOString()]",
			`[0,"2020-07-01T00:00:00.000Z"]`,
		},
		{
			"const d = new TextDecoder(); let s = ''; for (const b of new TextEncoder().encode('aä€💥b')) s += " +
				"d.decode(new Uint8Array([b]), {stream: true}); return s + d.decode()",
			`"aä€💥b"`,
		},
		{
			"return [new TextDecoder('shift_jis').decode(new Uint8Array([0x93, 0xfa])), new " +
				"TextDecoder('GBK').encoding]",
			`["日","gbk"]`,
		},
		// Events and what cancels.
		{"const t = new EventTarget(), seen = []; t.addEventListener('x', e => { seen.push(e.type, e.target === " +
			"t, e.detail); e.preventDefault() }, {once: true}); const r = t.dispatchEvent(new CustomEvent('x', " +
			"{cancelable: true, detail: 5})); t.dispatchEvent(new Event('x')); return [seen, r]",
			`[["x",true,5],false]`},
		{"const c = new AbortController(), seen = []; c.signal.onabort = () => seen.push('on'); " +
			"c.signal.addEventListener('abort', () => seen.push(c.signal.reason.name)); c.abort(); " +
			"c.abort('again'); return [seen, c.signal.aborted, c.signal.reason instanceof DOMException, " +
			"c.signal.reason.code]",
			`[["on","AbortError"],true,true,20]`},
		{
			"const s = AbortSignal.any([AbortSignal.timeout(1), new AbortController().signal]); await new " +
				"Promise(r => s.addEventListener('abort', r)); return s.reason.name",
			`"TimeoutError"`,
		},
		{"const h = new Headers({'Content-Type': 'a', 'X-B': ' 1 '}); h.append('x-b', '2'); " +
			"h.append('set-cookie', 'a=1'); h.append('Set-Cookie', 'b=2'); return [[...h], h.get('X-b'), " +
			"h.get('none'), h.getSetCookie()]",
			`[[["content-type","a"],["set-cookie","a=1"],["set-cookie","b=2"],["x-b","1, 2"]],"1, ` +
				`2",null,["a=1","b=2"]]`},
		{"try { new Headers({a: 'x\\r\\ny'}) } catch (e) { return e.name }", `"TypeError"`},
		// Streams.
		{"const b = await new Response(new Blob(['wörld '.repeat(1000)]).stream().pipeThrough(new " +
			"CompressionStream('gzip'))).arrayBuffer()\n" +
			"return [new Uint8Array(b)[0], b.byteLength < 200, (await new Response(new " +
			"Blob([b]).stream().pipeThrough(new DecompressionStream('gzip'))).text()).length]",
			`[31,true,6000]`},
		{
			"const d = new DecompressionStream('gzip'), w = d.writable.getWriter(); w.write(new " +
				"Uint8Array([1])).catch(() => {}); w.close().catch(() => {}); try { await new " +
				"Response(d.readable).text() } catch (e) { return e.name }",
			`"TypeError"`,
		},
		{"let s = ''; for await (const x of ReadableStream.from(['a', 'b'])) s += x; return s", `"ab"`},
		// crypto.subtle: FIPS 180, RFC 4231, and what it makes itself.
		{
			"return base64UrlEncode(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('abc')))",
			`"ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"`,
		},
		{"const e = t => new TextEncoder().encode(t), k = await crypto.subtle.importKey('raw', e('Jefe'), {name: " +
			"'HMAC', hash: 'SHA-256'}, false, ['sign', 'verify']), s = await crypto.subtle.sign('HMAC', k, " +
			"e('what do ya want for nothing?'))\n" +
			"return [crypto.timingSafeEqual(s, crypto.hmac('sha256', 'Jefe', 'what do ya want for nothing?', " +
			"'bytes')), await crypto.subtle.verify('HMAC', k, s, e('x')), k instanceof CryptoKey, await " +
			"crypto.subtle.exportKey('raw', k).catch(e => e.name)]",
			`[true,false,true,"InvalidAccessError"]`},
		{"const k = await crypto.subtle.generateKey({name: 'AES-GCM', length: 256}, true, ['encrypt', " +
			"'decrypt']), a = {name: 'AES-GCM', iv: new Uint8Array(12)}, c = new Uint8Array(await " +
			"crypto.subtle.encrypt(a, k, new Uint8Array([1, 2])))\n" +
			"const plain = Array.from(new Uint8Array(await crypto.subtle.decrypt(a, k, c))); c[0] ^= 1; return " +
			"[plain, c.length, await crypto.subtle.decrypt(a, k, c).catch(e => e.name)]",
			`[[1,2],18,"OperationError"]`},
		{"const out = []; for (const a of [{name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256', modulusLength: 2048, " +
			"publicExponent: new Uint8Array([1, 0, 1])}, {name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256'}, " +
			"{name: 'Ed25519'}]) {\n" +
			"const {publicKey, privateKey} = await crypto.subtle.generateKey(a, true, ['sign', 'verify']), data = " +
			"new Uint8Array([1]), s = await crypto.subtle.sign(a, privateKey, data)\n" +
			"for (const f of ['spki', 'jwk']) { const k = await crypto.subtle.importKey(f, await " +
			"crypto.subtle.exportKey(f, publicKey), a, true, ['verify']); out.push(await crypto.subtle.verify(a, " +
			"k, s, data), await crypto.subtle.verify(a, k, s, new Uint8Array([2]))) } }; return out",
			`[true,false,true,false,true,false,true,false,true,false,true,false]`},
		{
			"try { await crypto.subtle.importKey('raw', new Uint8Array(5), 'AES-GCM', false, ['encrypt']) } catch " +
				"(e) { return e.name }",
			`"DataError"`,
		},
		// Intl, and the methods that go by it. What is not there is named.
		{"return [(1234567.891).toLocaleString(), (0.256).toLocaleString('de-DE', {style: 'percent'}), " +
			"(1234.5).toLocaleString('de-DE', {style: 'currency', currency: 'EUR'}), " +
			"(12345678901234567890n).toLocaleString('en-IN'), (1e21).toLocaleString('en')]",
			"[\"1,234,567.891\",\"26\u00a0%\",\"1.234,50\u00a0€\",\"1,23,45,67,89,01,23,45,67,890\",\"1,000,000,000,000,000,000,000\"]"},
		{"const d = new Date(Date.UTC(2026, 10, 1, 5, 30)); return [d.toLocaleString('en-US', {timeZone: " +
			"'America/New_York'}), new Date(d.getTime() + 36e5).toLocaleString('en-US', {timeZone: " +
			"'America/New_York', timeZoneName: 'short'}), d.toLocaleDateString('de-DE', {weekday: 'long', day: " +
			"'numeric', month: 'long'}), d.toLocaleTimeString('en-GB'), d.toLocaleDateString('sv-SE')]",
			`["11/1/2026, 1:30:00 AM","11/1/2026, 1:30:00 AM EST","Sonntag, 1. November","05:30:00","2026-11-01"]`},
		{"return [['Z', 'a', 'ä', 'b'].sort((a, b) => a.localeCompare(b)), ['z', 'ä'].sort(new " +
			"Intl.Collator('sv').compare), 'a'.localeCompare('A', undefined, {sensitivity: 'base'}), ['a10', " +
			"'a2'].sort(new Intl.Collator('en', {numeric: true}).compare)]",
			`[["a","ä","b","Z"],["z","ä"],0,["a2","a10"]]`},
		{"return [[0, 1, 2, 5].map(n => new Intl.PluralRules('pl').select(n)), new Intl.PluralRules('en', {type: " +
			"'ordinal'}).select(22), new Intl.RelativeTimeFormat('en', {numeric: 'auto'}).format(-1, 'day'), new " +
			"Intl.ListFormat('en').format(['a', 'b', 'c'])]",
			`[["many","one","few","many"],"two","yesterday","a, b, and c"]`},
		{
			"return ['i'.toLocaleUpperCase('tr'), [1.5, new Date(0)].toLocaleString('de'), " +
				"Intl.DateTimeFormat().resolvedOptions().timeZone]",
			`["İ","1,5,1.1.1970, 00:00:00","UTC"]`,
		},
		{"return [() => (1).toLocaleString('tlh'), () => (1).toLocaleString('ar-EG'), () => new " +
			"Date(0).toLocaleString('en', {timeZone: 'Mars/Base'}), () => new " +
			"Date(0).toLocaleString('en-u-ca-hebrew'), () => 'a'.localeCompare('b', 'en', {ignorePunctuation: " +
			"true})].map(f => { try { return f() } catch (e) { return e.name } })",
			`["RangeError","RangeError","RangeError","RangeError","RangeError"]`},
		// References and resources.
		{
			"const seen = []; { using a = {[Symbol.dispose]() { seen.push('a') }}; await using b = {async " +
				"[Symbol.asyncDispose]() { seen.push('b') }}; seen.push('body') } return seen",
			`["body","b","a"]`,
		},
		{
			"return [new WeakRef({x: 1}).deref().x, (() => { try { new WeakRef(1) } catch (e) { return e.name } })()]",
			`[1,"TypeError"]`,
		},
		{
			"globalThis.Event = 5; Intl = 6; return [Event, Intl, Object.keys(globalThis).includes('Headers'), " +
				"typeof self.Headers]",
			`[5,6,false,"function"]`,
		},
		// The language.
		{"class A { #x = 1; static { this.y = 2 } has(o) { return #x in o } }\nreturn [new A().has(new A()), A.y, " +
			"[3, 1, 2].toSorted(), Object.groupBy([1, 2], x => x % 2 ? 'o' : 'e'), 2n ** 64n + '', " +
			"'aXbX'.replaceAll('X', '-'), [1].at(-1), null ?? 1]",
			`[true,2,[1,2,3],{"o":[1],"e":[2]},"18446744073709551616","a-b-",1,1]`},
		{"let s = ''; for await (const x of (async function* () { yield 1; yield 2 })()) s += x; return s", `"12"`},
	} {
		t.Run(c.statements, func(t *testing.T) {
			is.New(t).Equal(value(t, rt, body(c.statements)), c.want)
		})
	}
}

// nothing checks that a script finds no way out by the usual names.
func (s *suite) nothing(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	for _, name := range []string{
		"process", "require", "module", "Deno", "Bun", "std", "os", "scriptArgs", "print", "load", "Worker",
		"fetch", "XMLHttpRequest", "WebAssembly", "native", "host", "hostPrelude", "__filename",
	} {
		is.Equal(value(t, rt, body("return typeof globalThis["+"'"+name+"']")), `"undefined"`)
	}
	for _, module := range []string{
		"std", "os", "fs", "node:fs", "/etc/passwd", "./main.js", "data:text/javascript,export default 1",
		"http://127.0.0.1/",
	} {
		p := compile(t, rt, "export const main = name => import(name).then(() => 'loaded', () => 'refused')")
		r := run(t, rt, p, jsvm.Call{Args: []json.RawMessage{json.RawMessage(`"` + module + `"`)}})
		is.Equal(string(r.Value), `"refused"`)
	}
	// Code that is made while the script runs is like all other code: global, and in no scope of
	// the Runtime.
	is.Equal(
		value(
			t, rt,
			body("return [eval('1 + 1'), new Function('return typeof native')(), (0, eval)('typeof host'), (() => "+
				"{}).constructor('return this')() === globalThis]"),
		),
		`[2,"undefined","undefined",true]`,
	)
	// Neither the stack nor the names of functions lead to the Runtime's own values.
	is.Equal(
		value(
			t, rt,
			body("let c; try { (function f() { c = f.caller })() } catch { c = 'refused' }; return c === "+
				"'refused' || c === null || c === undefined || typeof c"),
		),
		`true`,
	)
}
