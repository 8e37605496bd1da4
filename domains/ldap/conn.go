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

	"github.com/tenantcontent/tenantcontent/errs"
)

// conn is a connection for one call. Its socket is closed when the call's context ends or when the
// directory sends nothing for the timeout; everything that waits for it then fails. go-ldap's own
// timeouts are not used: they count a whole page, and drop an entry that its reader does not take
// in time.
type conn struct {
	*goldap.Conn
	*realm
	*host
	ctx       context.Context
	raw       net.Conn
	encrypted *tls.Conn // over raw; nil without TLS
	frames    *frames
	silent    *time.Timer // closes raw
	timedOut  atomic.Bool // silent has closed it
	stop      func() bool // keeps ctx from closing raw
	others    []*conn     // to hosts that this one refers to
}

// connectTo returns a connection to a host, with TLS if that is configured, that is bound as the
// service. The connection and TLS have limit each. The caller closes it.
func (r *realm) connectTo(ctx context.Context, h *host, limit time.Duration, budget *budget) (*conn, error) {
	c, err := r.reach(ctx, h, limit)
	if err != nil {
		return nil, err
	}
	if err := c.start(limit, budget); err != nil {
		return nil, err
	}
	if err := c.bind(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// start begins to speak with a directory, with TLS if that is configured. It closes the socket if
// that fails.
func (c *conn) start(limit time.Duration, budget *budget) error {
	c.silent = time.AfterFunc(limit, func() { c.timedOut.Store(true); c.raw.Close() })
	c.stop = context.AfterFunc(c.ctx, func() { c.raw.Close() })
	transport, err := c.encrypt()
	if err != nil {
		c.release()
		return errUnreached{c.failed(err, c.noTLS)}
	}
	c.frames = newFrames(transport, budget)
	c.Conn = goldap.NewConn(c.frames, true) // true: go-ldap has nothing to do with TLS
	c.Start()
	return nil
}

// bind binds as the service, if there is an account for it.
func (c *conn) bind() error {
	c.silent.Stop() // the directory may send nothing between two requests
	if c.bindDN == "" {
		return nil
	}
	leave, err := c.account.turn(c.ctx)
	if err != nil && c.ctx.Err() != nil {
		return c.failed(err, c.noBind)
	}
	if err != nil {
		return err
	}
	defer leave()
	c.resetTimeout()
	defer c.silent.Stop()
	p, err := c.bindWith(c.bindDN, c.bindPassword)
	switch {
	case err == nil && p.refusal != "": // searches would be refused
		return errs.New(
			errs.Upstream,
			"The directory %s accepts the bind of %s for nothing but a change of its password: %s.", c.url,
			c.bindDN, p.refusal,
		)
	case err == nil:
		c.accepted(p)
		return nil
	case resultOf(err) == "":
		return errUnreached{c.failed(err, c.noBind)}
	case !isRefusal(err):
		return c.failed(err, c.noBind)
	}
	err = c.failed(err, func(err error) string { return c.refusedBind(err, p.refusal) })
	until := c.account.refused(err)
	c.log.WarnContext(c.ctx, "directory refuses the service account: it is not asked for a while", "host",
		c.url, "bindDN", c.bindDN,
		"until", until.UTC(), "err", err)
	return err
}

// accepted logs what changes with a bind of the service that has succeeded.
func (c *conn) accepted(p policy) {
	back, news := c.account.accepted(p.warning)
	if back {
		c.log.InfoContext(c.ctx, "directory accepts the service account again", "host", c.url, "bindDN", c.bindDN)
	}
	if news {
		c.log.WarnContext(
			c.ctx, "directory warns of the password of the service account", "host", c.url, "bindDN", c.bindDN,
			"reason", p.warning,
		)
	}
}

// reach opens a socket.
func (r *realm) reach(ctx context.Context, h *host, limit time.Duration) (*conn, error) {
	c := &conn{realm: r, host: h, ctx: ctx}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	if c.raw, err = r.dial(limited, "tcp", h.address); err != nil {
		return nil, errUnreached{c.failed(err, c.noConnection)}
	}
	return c, nil
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
	c.encrypted = tls.Client(c.raw, c.tls)
	return c.encrypted, c.encrypted.HandshakeContext(c.ctx)
}

// maxStartTLS bounds the answer to StartTLS, in bytes.
const maxStartTLS = 64 << 10

// startTLS starts TLS on a new socket (RFC 4511, section 4.14). It reads the response byte by byte,
// so that bytes which are injected behind it go to the handshake and are never taken for a response
// of the directory. go-ldap's StartTLS is not used, as it returns errors of certificates as text
// alone.
func startTLS(raw net.Conn) error {
	request := ber.NewSequence("LDAPMessage")
	request.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, 1, "messageID"))
	extended := ber.Encode(
		ber.ClassApplication, ber.TypeConstructed, goldap.ApplicationExtendedRequest, nil, "ExtendedRequest",
	)
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

// release closes the sockets.
func (c *conn) release() {
	for _, other := range c.others {
		other.release()
	}
	c.stop()
	c.silent.Stop()
	c.raw.Close()
}

// close closes the connection. The socket is closed first: go-ldap's Close waits for its writer,
// which may wait for a directory that reads nothing.
func (c *conn) close() {
	c.release()
	for _, other := range c.others {
		other.Conn.Close()
	}
	c.Conn.Close()
}
