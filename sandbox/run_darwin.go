// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// seatbelt is the program with which macOS confines programs.
const seatbelt = "/usr/bin/sandbox-exec"

// Hide keeps other processes of the same user from attaching to this one as debuggers.
// They may still read its environment.
func Hide() error {
	if err := unix.PtraceDenyAttach(); err != nil {
		return fmt.Errorf("sandbox: this process cannot be hidden from others: %w", err)
	}
	return nil
}

var available = sync.OnceValue(func() Support {
	missing := []string{
		"processes that leave the group of their program may remain after the run",
		"programs see the names and command lines of other processes",
		"the number of processes and the memory of a program are not limited",
	}
	if _, err := os.Stat(seatbelt); err != nil {
		return Support{Missing: append(missing, "there is no "+seatbelt)}
	}
	return Support{Parts: []Part{Seatbelt}, Missing: missing}
})

// prepare makes of the command one that starts sandbox-exec with the program.
func (r *Run) prepare() error {
	program, err := programOf(r.cmd)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	r.profile.program = program
	if r.profile.Unconfined {
		return nil
	}
	if err := r.profile.Supported(); err != nil {
		return err
	}
	return r.confine(program)
}

// supported is like [Profile.Supported], for a profile that confines, given what the system has.
func (p *Profile) supported(has Support) error {
	if !has.Has(Seatbelt) || slices.Contains(p.Without, Seatbelt) {
		return fmt.Errorf("sandbox: %w: there is no %s", ErrUnavailable, seatbelt)
	}
	return nil
}

func (r *Run) confine(program string) error {
	v, err := r.profile.look()
	if err != nil {
		return err
	}
	r.view = v
	base, err := r.scratch()
	if err != nil {
		return err
	}
	temp, err := r.temporary(base)
	if err != nil {
		return fmt.Errorf("sandbox: no temporary folder: %w", err)
	}
	r.setCaches(temp, "")
	network, err := r.network()
	if err != nil {
		return err
	}
	argv := []string{seatbelt, "-p", seatbeltProfile(v, temp, network), program}
	if len(r.cmd.Args) > 1 {
		argv = append(argv, r.cmd.Args[1:]...)
	}
	r.cmd.Path, r.cmd.Args, r.cmd.Err = seatbelt, argv, nil
	return nil
}

// network returns what the program reaches. If the profile names hosts, that is a proxy and
// nothing else.
func (r *Run) network() (reach, error) {
	if len(r.profile.Hosts) == 0 {
		return reach{all: r.profile.Network}, nil
	}
	hosts, err := parseHosts(r.profile.Hosts)
	if err != nil {
		return reach{}, err
	}
	l, err := new(net.ListenConfig).Listen(r.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return reach{}, fmt.Errorf("sandbox: the proxy cannot listen: %w", err)
	}
	r.proxy = newProxy(hosts)
	r.cleanup = append(r.cleanup, r.proxy.close)
	r.proxy.serve(l)
	for _, v := range proxyVariables(l.Addr().String()) {
		r.setEnv(v[0], v[1])
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return reach{port: port}, err
}
