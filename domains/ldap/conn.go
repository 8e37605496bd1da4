package ldap

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"time"

	ber "github.com/go-asn1-ber/asn1-ber"
	goldap "github.com/go-ldap/ldap/v3"
)

// conn is a connection for one call. Its socket is closed when the call's context ends or when the directory is silent
// for too long, and then everything that waits for it fails. go-ldap's own time-outs are not used: they count a whole
// page, and drop an entry for which its reader is late.
type conn struct {
	*goldap.Conn
	*realm
	ctx    context.Context
	raw    net.Conn
	frames *frames
	silent *time.Timer // closes raw
	late   atomic.Bool // silent has closed it
	forget func() bool // that ctx closes raw
}

// connect returns a connection with TLS where it is configured, bound as the service, on which the directory may send most
// bytes. Close it.
func (r *realm) connect(ctx context.Context, most int64) (*conn, error) {
	c := &conn{realm: r, ctx: ctx}
	if err := c.reach(); err != nil {
		return nil, err
	}
	c.silent = time.AfterFunc(r.timeout, func() { c.late.Store(true); c.raw.Close() })
	c.forget = context.AfterFunc(ctx, func() { c.raw.Close() })
	transport, err := c.encrypt()
	if err != nil {
		c.release()
		return nil, c.failed(err, c.noTLS)
	}
	c.frames = newFrames(transport, most)
	c.Conn = goldap.NewConn(c.frames, true) // true: go-ldap has nothing to do with TLS
	c.Start()
	if r.bindDN == "" {
		return c, nil
	}
	c.awake()
	if err := c.Bind(r.bindDN, r.bindPassword); err != nil {
		defer c.close()
		return nil, c.failed(redacted(err, r.bindPassword), c.noBind)
	}
	return c, nil
}

// reach opens the socket.
func (c *conn) reach() (err error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	if c.raw, err = c.dial(ctx, "tcp", c.address); err != nil {
		return c.failed(err, c.noConnection)
	}
	return nil
}

// encrypt returns the socket with TLS on it, or as it is.
func (c *conn) encrypt() (net.Conn, error) {
	if !c.secure && !c.realm.startTLS {
		return c.raw, nil
	}
	if c.realm.startTLS {
		if err := askTLS(c.raw); err != nil {
			return nil, err
		}
	}
	t := tls.Client(c.raw, c.tls)
	return t, t.HandshakeContext(c.ctx)
}

// maxStartTLS bounds the answer to StartTLS, in bytes.
const maxStartTLS = 64 << 10

// askTLS asks for TLS on a socket on which nothing was said yet (RFC 4511, 4.14). It reads the answer byte by byte: what
// somebody on the way puts behind it meets the handshake, and never counts as an answer of the directory.
// (go-ldap's StartTLS hides in a text what is wrong with a certificate.)
func askTLS(raw net.Conn) error {
	request := ber.NewSequence("LDAPMessage")
	request.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, 1, "messageID"))
	extended := ber.Encode(ber.ClassApplication, ber.TypeConstructed, goldap.ApplicationExtendedRequest, nil, "ExtendedRequest")
	extended.AppendChild(ber.NewString(ber.ClassContext, ber.TypePrimitive, 0, "1.3.6.1.4.1.1466.20037", "requestName"))
	request.AppendChild(extended)
	if _, err := raw.Write(request.Bytes()); err != nil {
		return err
	}
	answer, err := ber.ReadPacket(io.LimitReader(raw, maxStartTLS))
	if err != nil {
		return err
	}
	return goldap.GetLDAPError(answer)
}

// awake notes that the directory has answered, or is asked.
func (c *conn) awake() { c.silent.Reset(c.timeout) }

// release lets go of the socket.
func (c *conn) release() {
	c.forget()
	c.silent.Stop()
	c.raw.Close()
}

// close ends the connection. The socket goes first: go-ldap's Close waits for its writer, and that may wait for a
// directory that reads nothing.
func (c *conn) close() {
	c.release()
	c.Conn.Close()
}
