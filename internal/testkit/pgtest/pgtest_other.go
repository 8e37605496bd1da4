//go:build !unix

package pgtest

import "context"

// Cluster is a running server, which is not supported on this system.
type Cluster struct{ URL, SocketURL, Socket string }

func Start(context.Context) (*Cluster, error)                   { return nil, ErrNoServer }
func StartIn(context.Context, string) (*Cluster, error)         { return nil, ErrNoServer }
func StartCopy(context.Context, string) (*Cluster, error)       { return nil, ErrNoServer }
func (c *Cluster) Save(context.Context, string) error           { return ErrNoServer }
func (c *Cluster) Stop()                                        {}
func (c *Cluster) Kill()                                        {}
func (c *Cluster) Freeze()                                      {}
func (c *Cluster) Thaw()                                        {}
func (c *Cluster) Shutdown()                                    {}
func (c *Cluster) Standby(context.Context) error                { return ErrNoServer }
func (c *Cluster) Restart(context.Context) error                { return ErrNoServer }
func (c *Cluster) AddStandby(context.Context) (*Cluster, error) { return nil, ErrNoServer }
