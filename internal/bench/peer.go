package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// peerFiles are the server that runs handlers with Node.js and isolated-vm.
//
//go:embed peer
var peerFiles embed.FS

// peer is that server, running.
type peer struct {
	address string // host:port
	stop    func() error
}

// startPeer installs isolated-vm, unless it is in the cache of an earlier run, and starts the
// server with the handlers in dir. It records calls in the database, none if the URL is empty.
func startPeer(ctx context.Context, dir, database string) (*peer, error) {
	at, err := installPeer(ctx)
	if err != nil {
		return nil, fmt.Errorf(
			"isolated-vm needs Node.js 20, npm and a C++ compiler (apt-get install nodejs npm g++ make python3): %w",
			err,
		)
	}
	server := exec.CommandContext(ctx, "node", "--no-node-snapshot", "server.mjs", dir, database)
	server.Dir, server.Stderr = at, os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	p := &peer{stop: func() error { return errors.Join(in.Close(), server.Wait()) }}
	port, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server with isolated-vm has not started: %w", err), p.stop())
	}
	p.address = "127.0.0.1:" + strings.TrimSpace(port)
	return p, nil
}

// installPeer returns the folder with the server and what it imports, which npm installs there once
// for each version of Node.js.
func installPeer(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return "", err
	}
	at := filepath.Join(cache, "tenantcontent-bench", "node-"+strings.TrimSpace(string(version)))
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	before, _ := os.ReadFile(filepath.Join(at, "installed.json"))
	var wanted []byte
	for _, name := range []string{"package.json", "server.mjs"} {
		b, err := peerFiles.ReadFile("peer/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(at, name), b, 0o644); err != nil {
			return "", err
		}
		if name == "package.json" {
			wanted = b
		}
	}
	if bytes.Equal(before, wanted) {
		return at, nil
	}
	fmt.Fprintln(os.Stderr, "installing isolated-vm, which takes some minutes the first time …")
	npm := exec.CommandContext(
		ctx, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error",
	)
	npm.Dir = at
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, out)
	}
	return at, os.WriteFile(filepath.Join(at, "installed.json"), wanted, 0o644)
}

// engine returns how many calls a second one caller makes, without a server around them.
func (p *peer) engine(name string, d time.Duration) (float64, error) {
	res, err := http.Get(fmt.Sprintf("http://%s/engine/%s?ms=%d", p.address, name, d.Milliseconds()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return 0, errors.Join(err, errors.New(res.Status))
	}
	return strconv.ParseFloat(string(b), 64)
}
