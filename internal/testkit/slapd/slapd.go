// Package slapd runs throwaway LDAP directories, only for tests and internal/bench: OpenLDAP's
// slapd on loopback ports, as the user of the test, loaded with a Tree, in a temporary folder.
package slapd

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-ldap/ldap/v3"
)

// BaseDN is the root of every directory. AdminDN may do everything and has a different password on
// each server. ReaderDN may read everything but passwords, with any number of entries. Other users
// get at most 500 entries, paged or not.
const (
	BaseDN   = "dc=example,dc=org"
	AdminDN  = "cn=admin," + BaseDN
	ReaderDN = "cn=reader," + BaseDN
)

// ReaderPassword is the password of ReaderDN.
const ReaderPassword = "reader's secret"

// Server is a running directory. The caller must stop it. If the process ends without that, even by
// SIGKILL, the server is stopped, too.
type Server struct {
	URL    string // ldap://127.0.0.1:port, which also supports StartTLS
	TLSURL string // ldaps://127.0.0.1:port
	CACert string // PEM; its certificate is for 127.0.0.1 and localhost

	folder, password string
	watcher          *exec.Cmd
	pipe, told       *os.File // the watcher ends the server when pipe is closed; told ends with the server
}

// watch is a shell script. It outlives this process, and then stops the server and removes the
// folder.
//
//go:embed watch.sh
var watch string

// Start loads a directory and starts a server on it, in well under a second. ctx limits the start,
// not the server.
// It returns ErrNoServer if slapd is not installed.
func Start(ctx context.Context, tree *Tree) (*Server, error) {
	in, err := find()
	if err != nil {
		return nil, err
	}
	for range 3 { // another process may take the ports before the server starts
		s := &Server{password: rand.Text()}
		if err = s.start(ctx, in, tree); err == nil {
			return s, nil
		}
		s.Stop()
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func (s *Server) start(ctx context.Context, in installation, tree *Tree) (err error) {
	if s.folder, err = os.MkdirTemp("", "slapd"); err != nil {
		return err
	}
	if err := in.unconfine(s.folder); err != nil {
		return err
	}
	if err := s.load(ctx, in, tree); err != nil {
		return err
	}
	return s.run(ctx, in.binary)
}

// load writes the configuration and fills the database.
func (s *Server) load(ctx context.Context, in installation, tree *Tree) error {
	if err := s.configure(in, tree); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, in.binary, "-Tadd", "-q", "-f", s.file("slapd.conf"))
	cmd.Dir = s.folder
	cmd.Stdin = bytes.NewReader(tree.ldif.Bytes())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("slapd: loading: %w\n%s", err, out)
	}
	return nil
}

func (s *Server) file(name string) string { return filepath.Join(s.folder, name) }

// run starts the server on two free ports and waits until it answers.
func (s *Server) run(ctx context.Context, binary string) error {
	plain, err := freePort()
	if err != nil {
		return err
	}
	secure, err := freePort()
	if err != nil {
		return err
	}
	s.URL, s.TLSURL = fmt.Sprintf("ldap://127.0.0.1:%d", plain), fmt.Sprintf("ldaps://127.0.0.1:%d", secure)
	err = s.spawn(binary, "-d", "0", "-f", s.file("slapd.conf"), "-h", s.URL+" "+s.TLSURL) // -d: stay a child
	if err != nil {
		return err
	}
	if err := s.wait(ctx); err != nil {
		log, _ := os.ReadFile(s.file("log"))
		return fmt.Errorf("slapd: starting: %w\n%s", err, log[max(0, len(log)-2000):])
	}
	return nil
}

// spawn starts the server with the watcher. It only passes files, so that no goroutine copies data.
func (s *Server) spawn(args ...string) error {
	in, pipe, err := os.Pipe() // Go marks both ends close-on-exec, so no other child keeps them open
	if err != nil {
		return err
	}
	defer in.Close()
	told, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, pipe.Close())
	}
	defer out.Close()
	s.pipe, s.told = pipe, told
	s.watcher = exec.Command("/bin/sh", append([]string{"-c", watch, "slapd-watch", s.folder}, args...)...)
	s.watcher.Dir = s.folder
	s.watcher.Stdin, s.watcher.Stdout = in, out
	return s.watcher.Start()
}

// wait waits until the server accepts the password of this tree, which no other server has.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not ready after 30 seconds"))
	defer cancel()
	for ctx.Err() == nil {
		c, err := s.Admin()
		if err == nil {
			return c.Close()
		}
		s.told.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := s.told.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the server ended")
		}
	}
	return context.Cause(ctx)
}

// freePort returns a port below those that operating systems assign to clients.
func freePort() (int, error) {
	for range 100 {
		port := 15000 + mathrand.IntN(17000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("slapd: no free loopback port")
}

// Stop ends the server, closes its connections and removes its folder. It may be called twice.
func (s *Server) Stop() {
	if s.watcher != nil {
		s.pipe.Close()
		s.watcher.Wait()
		s.told.Close()
		s.watcher = nil
	}
	os.RemoveAll(s.folder) // the watcher has done it, unless it could not start
}

// Admin returns a connection that may change everything. The caller must close it.
func (s *Server) Admin() (*ldap.Conn, error) {
	c, err := ldap.DialURL(s.URL)
	if err != nil {
		return nil, err
	}
	c.SetTimeout(30 * time.Second)
	if err := c.Bind(AdminDN, s.password); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Change calls change with a connection of Admin.
func (s *Server) Change(change func(c *ldap.Conn) error) error {
	c, err := s.Admin()
	if err != nil {
		return err
	}
	return errors.Join(change(c), c.Close())
}

// Set replaces the values of an attribute. Without values it removes the attribute.
func (s *Server) Set(dn, attribute string, values ...string) error {
	r := ldap.NewModifyRequest(dn, nil)
	r.Replace(attribute, values)
	return s.Change(func(c *ldap.Conn) error { return c.Modify(r) })
}

// Rename sets the first part of the entry dn, such as uid=sam. Groups have been updated when it
// returns.
func (s *Server) Rename(dn, rdn string) error {
	return s.Change(func(c *ldap.Conn) error {
		if err := c.ModifyDN(ldap.NewModifyDNRequest(dn, rdn, true, "")); err != nil {
			return err
		}
		return forgotten(c, dn)
	})
}

// Delete removes an entry. It has been removed from groups when Delete returns.
func (s *Server) Delete(dn string) error {
	return s.Change(func(c *ldap.Conn) error {
		if err := c.Del(ldap.NewDelRequest(dn, nil)); err != nil {
			return err
		}
		return forgotten(c, dn)
	})
}

// forgotten waits until the DN is not a member of any group, because refint works in the
// background.
func forgotten(c *ldap.Conn, dn string) error {
	filter := "(member=" + ldap.EscapeFilter(dn) + ")"
	for range 2000 {
		r, err := c.Search(ldap.NewSearchRequest(
			BaseDN, ldap.ScopeWholeSubtree, 0, 0, 0, false, filter, []string{"1.1"}, nil,
		))
		if err != nil || len(r.Entries) == 0 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("slapd: groups still have the member " + dn)
}

// Config returns the configuration of a domain that reads the directory at an address such as URL,
// with changed members.
func (s *Server) Config(url string, changed map[string]any) json.RawMessage {
	config := map[string]any{
		"url": url, "caCert": s.CACert, "bindDN": ReaderDN, "bindPassword": ReaderPassword, "baseDN": BaseDN,
	}
	for name, value := range changed {
		config[name] = value
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // the values can be encoded
	}
	return text
}
