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

// conn is a connection for one call. Its socket is closed when the call's context ends or when the directory sends nothing
// for the timeout; everything that waits for it then fails. go-ldap's own timeouts are not used: they count a whole page, and
// drop an entry that its reader does not take in time.
type conn struct {
	*goldap.Conn
	*realm
	ctx      context.Context
	raw      net.Conn
	frames   *frames
	silent   *time.Timer // closes raw
	timedOut atomic.Bool // silent has closed it
	stop     func() bool // keeps ctx from closing raw
}

// connect returns a connection, with TLS if that is configured, that is bound as the service and takes at most most bytes from
// the directory. The caller closes it.
func (r *realm) connect(ctx context.Context, most int64) (*conn, error) {
	c := &conn{realm: r, ctx: ctx}
	if err := c.reach(); err != nil {
		return nil, err
	}
	c.silent = time.AfterFunc(r.timeout, func() { c.timedOut.Store(true); c.raw.Close() })
	c.stop = context.AfterFunc(ctx, func() { c.raw.Close() })
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
	c.resetTimeout()
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

// encrypt returns the socket with TLS if that is configured, else as it is.
func (c *conn) encrypt() (net.Conn, error) {
	if !c.secure && !c.realm.startTLS {
		return c.raw, nil
	}
	if c.realm.startTLS {
		if err := startTLS(c.raw); err != nil {
			return nil, err
		}
	}
	t := tls.Client(c.raw, c.tls)
	return t, t.HandshakeContext(c.ctx)
}

// maxStartTLS bounds the answer to StartTLS, in bytes.
const maxStartTLS = 64 << 10

// startTLS starts TLS on a new socket (RFC 4511, section 4.14). It reads the response byte by byte, so that bytes which are
// injected behind it go to the handshake and are never taken for a response of the directory. go-ldap's StartTLS is not used,
// as it returns errors of certificates as text alone.
func startTLS(raw net.Conn) error {
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

// resetTimeout restarts the timeout, before each request and after each response.
func (c *conn) resetTimeout() { c.silent.Reset(c.timeout) }

// release closes the socket.
func (c *conn) release() {
	c.stop()
	c.silent.Stop()
	c.raw.Close()
}

// close closes the connection. The socket is closed first: go-ldap's Close waits for its writer, which may wait for a directory
// that reads nothing.
func (c *conn) close() {
	c.release()
	c.Conn.Close()
}
