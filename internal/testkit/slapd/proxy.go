package slapd

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// Proxy forwards connections between a client and a directory, without TLS, and fails deliberately.
type Proxy struct {
	URL string // ldap://127.0.0.1:port

	listener net.Listener
	target   string
	after    int64
	stall    bool
	entries  atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
	done  bool
}

// Cut starts a proxy that forwards this many entries of search results, over all of its
// connections, and then closes the connection with the next one. The caller must close it.
func (s *Server) Cut(entries int) (*Proxy, error) { return s.proxy(entries, false) }

// Stall starts a proxy as Cut does that stops answering instead of closing the connection.
func (s *Server) Stall(entries int) (*Proxy, error) { return s.proxy(entries, true) }

func (s *Server) proxy(entries int, stall bool) (*Proxy, error) {
	target, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		URL:      "ldap://" + l.Addr().String(),
		listener: l,
		target:   target.Host,
		after:    int64(entries),
		stall:    stall,
	}
	go p.serve()
	return p, nil
}

// Entries returns how many entries of search results the directory has sent.
func (p *Proxy) Entries() int { return int(p.entries.Load()) }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	for _, c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			client.Close()
			continue
		}
		go func() { io.Copy(server, client); server.Close() }()
		go func() {
			if err := p.answers(client, server); err != errStalled {
				client.Close()
				server.Close()
			}
		}()
	}
}

// keep records connections for Close.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	return !p.done
}

var errStalled = fmt.Errorf("stalled")

// answers forwards the messages of the directory one by one.
func (p *Proxy) answers(client io.Writer, server io.Reader) error {
	for {
		message, err := readMessage(server)
		if err != nil {
			return err
		}
		if isEntry(message) && p.entries.Add(1) > p.after {
			if p.stall {
				return errStalled
			}
			return io.ErrUnexpectedEOF
		}
		if _, err := client.Write(message); err != nil {
			return err
		}
	}
}

// readMessage reads an LDAPMessage (RFC 4511): a sequence with its length.
func readMessage(r io.Reader) ([]byte, error) {
	message := make([]byte, 2, 64)
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, err
	}
	length := uint64(message[1])
	if length >= 0x80 {
		long := make([]byte, length&0x7f)
		if _, err := io.ReadFull(r, long); err != nil || len(long) > 8 {
			return nil, fmt.Errorf("slapd: a length of %d bytes: %w", len(long), err)
		}
		message = append(message, long...)
		length = binary.BigEndian.Uint64(append(make([]byte, 8-len(long)), long...))
	}
	head := len(message)
	message = append(message, make([]byte, length)...)
	_, err := io.ReadFull(r, message[head:])
	return message, err
}

// isEntry reports whether a message is an entry of a search result: application 4, after the
// message id.
func isEntry(message []byte) bool {
	at := 2
	if message[1] >= 0x80 {
		at += int(message[1] & 0x7f)
	}
	at += 2 + int(message[at+1])
	return message[at] == 0x64
}
