package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// callers is how many requests are under way at once.
const callers = 16

// caller is one connection that sends requests and reads answers. It is leaner than http.Client, so
// that the client takes little of what the servers are measured with.
type caller struct {
	conn net.Conn
	in   *bufio.Reader
	host string
	auth string
	more string // further header lines, each with its end
}

func dial(address, token string) (*caller, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &caller{
		conn: conn,
		in:   bufio.NewReaderSize(conn, 64<<10),
		host: address,
		auth: "Authorization: Bearer " + token + "\r\n",
	}, nil
}

// do sends one request and reads its answer to the end; it returns the number of bytes of the body.
func (c *caller) do(method, path, body string) (int64, error) {
	head := method + " " + path + " HTTP/1.1\r\nHost: " + c.host + "\r\n" + c.auth + c.more
	if body != "" {
		head += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	if _, err := io.WriteString(c.conn, head+"\r\n"+body); err != nil {
		return 0, err
	}
	return c.answer()
}

func (c *caller) answer() (int64, error) {
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if !strings.HasPrefix(string(status), "HTTP/1.1 2") && !strings.HasPrefix(string(status), "HTTP/1.1 304") {
		return 0, errors.New(string(status))
	}
	length, chunked := int64(0), false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) == 2 {
			break
		}
		if n, ok := number(line, "Content-Length: "); ok {
			length = n
		}
		chunked = chunked || strings.HasPrefix(string(line), "Transfer-Encoding: chunked")
	}
	if !chunked {
		return io.CopyN(io.Discard, c.in, length)
	}
	var total int64
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return total, err
		}
		var n int64
		if _, err := fmt.Sscanf(line, "%x", &n); err != nil {
			return total, err
		}
		if _, err := io.CopyN(io.Discard, c.in, n+2); err != nil || n == 0 {
			return total, err
		}
		total += n
	}
}

func number(line []byte, name string) (n int64, ok bool) {
	rest, ok := strings.CutPrefix(string(line), name)
	if !ok {
		return 0, false
	}
	for _, c := range []byte(rest) {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		}
	}
	return n, true
}

// throughput runs a request from many callers for a while and returns the requests a second.
// request gets the number of the caller and of its request.
func throughput(
	address, token string, n int, d time.Duration, request func(c *caller, who, i int) error,
) (float64, error) {
	var wg sync.WaitGroup
	counts, fails := make([]int, n), make([]error, n)
	begin := time.Now()
	for who := range n {
		wg.Go(func() {
			c, err := dial(address, token)
			if err != nil {
				fails[who] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			for i := 0; time.Since(begin) < d; i++ {
				if err := request(c, who, i); err != nil {
					fails[who] = err
					return
				}
				counts[who]++
			}
		})
	}
	wg.Wait()
	total := 0
	for _, c := range counts {
		total += c
	}
	return float64(total) / time.Since(begin).Seconds(), errors.Join(fails...)
}
