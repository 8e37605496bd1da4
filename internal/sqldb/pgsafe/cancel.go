package pgsafe

import (
	"context"
	"encoding/binary"
	"time"
)

// keyReader finds the key for cancelling statements in the first messages of a server. pgdriver
// does not expose it.
type keyReader struct {
	unread, key []byte
	found       bool // found, or the server sends none
}

// maxMessage is larger than any message before the first statement.
const maxMessage = 64 << 10

// note reads bytes that were received, and reports whether the key may follow in later ones.
func (r *keyReader) note(b []byte) (more bool) {
	r.unread = append(r.unread, b...)
	for len(r.unread) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(r.unread[1:]))
		kind := r.unread[0]
		if kind == 'Z' || kind == 'E' || size < 5 || size > maxMessage {
			return false
		}
		if len(r.unread) < size {
			return true
		}
		if kind == 'K' {
			r.key = append([]byte(nil), r.unread[5:size]...)
			return false
		}
		r.unread = r.unread[size:]
	}
	return true
}

const (
	cancelTimeout = 5 * time.Second
	maxCancels    = 8 // concurrent; servers notice further cancellations by client_connection_check_interval
)

// cancelRequest returns the message that cancels the statement of the session with a key.
func cancelRequest(key []byte) []byte {
	m := binary.BigEndian.AppendUint32(nil, uint32(8+len(key)))
	m = binary.BigEndian.AppendUint32(m, 80877102)
	return append(m, key...)
}

// cancel requests that the server of a connection stops the statement of the session with a key. It
// does not wait for that.
func (k *connector) cancel(h host, key []byte) {
	if key == nil {
		return
	}
	select {
	case k.cancels <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-k.cancels }()
		ctx, cancel := context.WithTimeout(context.Background(), min(cancelTimeout, k.target.connectTimeout))
		defer cancel()
		_, secured, err := k.open(ctx, h)
		if err != nil {
			return
		}
		defer func() { _ = secured.Close() }()
		if _, err := secured.Write(cancelRequest(key)); err == nil {
			_, _ = secured.Read(make([]byte, 1)) // the server closes the connection when it has read the request
		}
	}()
}
