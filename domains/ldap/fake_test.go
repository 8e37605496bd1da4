package ldap_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	goldap "github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
)

// fake is a directory for what slapd does not do: it answers each request as a test says.
type fake struct {
	url    string
	answer func(r asked)

	mu    sync.Mutex
	binds map[string]int   // result code of a bind, by DN; 0 is success
	bound []goldap.Control // of each response to a bind
	asked []string         // what has come, such as "bind cn=x"
	conns []net.Conn
}

// asked is one request, and where to answer it.
type asked struct {
	net.Conn
	id         int64
	base       string
	attributes []string
	cookie     string
	nth        int // search of its connection, from 1 on
}

func newFake(t *testing.T, answer func(r asked)) *fake {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	f := &fake{url: "ldap://" + l.Addr().String(), answer: answer}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			served.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			c.Close()
		}
		f.mu.Unlock()
		served.Wait()
	})
	return f
}

func (f *fake) config() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(
		`{"url": %q, "bindDN": "cn=reader", "bindPassword": "reader's secret", "baseDN": "dc=x", "timeoutMs": 3000}`,
		f.url,
	))
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for searches := 0; ; {
		p, err := ber.ReadPacket(in)
		if err != nil || len(p.Children) < 2 {
			return
		}
		r, op := asked{Conn: c, id: p.Children[0].Value.(int64)}, p.Children[1]
		switch op.Tag {
		case goldap.ApplicationBindRequest:
			dn := op.Children[1].Value.(string)
			f.note("bind " + dn)
			f.mu.Lock()
			code, controls := f.binds[dn], f.bound
			f.mu.Unlock()
			r.result(goldap.ApplicationBindResponse, code, controls...)
		case goldap.ApplicationSearchRequest:
			filter, err := goldap.DecompileFilter(op.Children[6])
			if err != nil {
				return
			}
			if base := op.Children[0].Value.(string); base == "" { // what it says of itself
				r.result(goldap.ApplicationSearchResultDone, 0)
				continue
			}
			searches++
			r.nth, r.base, r.cookie = searches, op.Children[0].Value.(string), cookieOf(p)
			for _, a := range op.Children[7].Children {
				r.attributes = append(r.attributes, a.Value.(string))
			}
			f.note("search " + filter)
			f.answer(r)
		default:
			f.note("other")
			f.answer(r)
		}
	}
}

// cookieOf returns the cookie of a request's paging control, "" for none.
func cookieOf(p *ber.Packet) string {
	if len(p.Children) < 3 {
		return ""
	}
	control, err := goldap.DecodeControl(p.Children[2].Children[0])
	if paging, ok := control.(*goldap.ControlPaging); ok && err == nil {
		return string(paging.Cookie)
	}
	return ""
}

func (f *fake) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
}

// log returns what was asked since the last time.
func (f *fake) log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.asked = nil }()
	return strings.Join(f.asked, "; ")
}

func (r asked) send(op *ber.Packet, controls ...goldap.Control) {
	p := ber.NewSequence("LDAPMessage")
	p.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, r.id, "id"))
	p.AppendChild(op)
	if len(controls) > 0 {
		list := ber.Encode(ber.ClassContext, ber.TypeConstructed, 0, nil, "Controls")
		for _, c := range controls {
			list.AppendChild(c.Encode())
		}
		p.AppendChild(list)
	}
	_, _ = r.Write(p.Bytes()) // whoever has asked may be gone
}

func text(s string) *ber.Packet {
	return ber.NewString(ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, s, "")
}

// result ends an operation.
func (r asked) result(tag ber.Tag, code int, controls ...goldap.Control) {
	op := ber.Encode(ber.ClassApplication, ber.TypeConstructed, tag, nil, "")
	op.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagEnumerated, code, ""))
	op.AppendChild(text(""))
	op.AppendChild(text("the directory's words, reader's secret among them"))
	r.send(op, controls...)
}

// end ends a page; the cookie is "" for the last one.
func (r asked) end(cookie string) {
	r.result(goldap.ApplicationSearchResultDone, 0, &goldap.ControlPaging{Cookie: []byte(cookie)})
}

// entry answers with an entry: names of attributes, each with its values, which a newline divides.
func (r asked) entry(dn string, attributes ...string) {
	op := ber.Encode(ber.ClassApplication, ber.TypeConstructed, goldap.ApplicationSearchResultEntry, nil, "")
	op.AppendChild(text(dn))
	list := ber.NewSequence("attributes")
	for i := 0; i < len(attributes); i += 2 {
		a := ber.NewSequence("attribute")
		a.AppendChild(text(attributes[i]))
		values := ber.Encode(ber.ClassUniversal, ber.TypeConstructed, ber.TagSet, nil, "values")
		for value := range strings.SplitSeq(attributes[i+1], "\n") {
			values.AppendChild(text(value))
		}
		a.AppendChild(values)
		list.AppendChild(a)
	}
	op.AppendChild(list)
	r.send(op)
}

// reference answers with what another server has.
func (r asked) reference(url string) {
	op := ber.Encode(ber.ClassApplication, ber.TypeConstructed, goldap.ApplicationSearchResultReference, nil, "")
	op.AppendChild(text(url))
	r.send(op)
}

// person answers with somebody.
func (r asked) person(n int) {
	name := fmt.Sprint("p", n)
	r.entry("uid="+name+",dc=x", "entryUUID", "id-"+name, "uid", name, "cn", "Person "+name)
}
