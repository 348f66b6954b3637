// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable is the running program, also if its file was replaced since it started.
const executable = "/proc/self/exe"

// Hide keeps other processes of the same user from reading this process's memory and
// its environment, in which keys often are, and keeps its memory out of core dumps.
// Root still can. Processes that this one starts are not hidden.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: this process cannot be hidden from others: %w", err)
	}
	return nil
}

// control is what a run needs on this system.
type control struct {
	stage stage
	order order
	pipes *plumbing

	mu      sync.Mutex
	keeper  *keeper // while the program runs
	stopped bool
	early   *report // a report that came before the program could start
}

// prepare decides how the program is confined.
func (r *Run) prepare() error {
	program, err := programOf(r.cmd)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	r.profile.program = program
	if err := usableHere(r.cmd); err != nil {
		return err
	}
	dir := r.cmd.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	r.control.stage = stage{Unconfined: r.profile.Unconfined, Limits: r.profile.Limits}
	if !r.profile.Unconfined {
		if err := r.confine(&r.control.stage); err != nil {
			return err
		}
	}
	argv := r.cmd.Args
	if len(argv) == 0 {
		argv = []string{program}
	}
	o := &r.control.order
	o.Path, o.Dir, o.Args, o.Env = []byte(program), []byte(dir), byteStrings(argv), byteStrings(r.cmd.Env)
	return nil
}

// usableHere returns an error if a command has something that runs on this system do
// not use.
func usableHere(cmd *exec.Cmd) error {
	if n := len(cmd.ExtraFiles); n > mostFiles-3 {
		return fmt.Errorf("sandbox: the command has %d extra files; at most %d can be passed on", n, mostFiles-3)
	}
	if slices.Contains(cmd.ExtraFiles, nil) {
		return errors.New("sandbox: an extra file of the command is nil")
	}
	if cmd.SysProcAttr == nil {
		return nil
	}
	attr := *cmd.SysProcAttr
	attr.Setsid, attr.Setpgid, attr.Noctty, attr.Pdeathsig = false, false, false, 0 // all programs are started so
	if !reflect.ValueOf(attr).IsZero() {
		return errors.New("sandbox: of SysProcAttr, a command may only set Setsid, Setpgid, Noctty and Pdeathsig")
	}
	return nil
}

// uses reports whether a part confines the programs of the profile.
func (p *Profile) uses(has Support, part Part) bool {
	return has.Has(part) && !slices.Contains(p.Without, part)
}

// supported is like [Profile.Supported], for a profile that confines, given what the system has.
func (p *Profile) supported(has Support) error {
	switch {
	case !p.uses(has, Seccomp) || !p.uses(has, Namespaces) && !p.uses(has, Landlock):
		return fmt.Errorf("sandbox: %w with the parts that may be used: %s", ErrUnavailable, strings.Join(has.Missing, "; "))
	case len(p.Hosts) > 0 && !p.uses(has, Namespaces):
		return fmt.Errorf("sandbox: %w to hosts without namespaces: Landlock limits the network by ports, and not by addresses. Use a profile without hosts: it has no network, or all of it", ErrUnavailable)
	}
	return nil
}

// confine chooses the parts that confine the program.
func (r *Run) confine(s *stage) error {
	has := Available()
	if err := r.profile.supported(has); err != nil {
		return err
	}
	s.Namespaces = r.profile.uses(has, Namespaces)
	if r.profile.uses(has, Landlock) {
		s.Landlock = landlockABI()
	}
	if len(r.profile.Hosts) > 0 {
		if err := r.filter(s); err != nil {
			return err
		}
	}
	v, err := r.profile.look()
	if err != nil {
		return err
	}
	if s.Namespaces && v.scan != nil && len(v.scan.Complete()) > 0 {
		v.refresh(&r.profile)
	}
	if s.Namespaces && (!r.profile.Network || len(r.profile.Hosts) > 0) {
		v.hideSockets()
		if v.scan != nil {
			v.refresh(&r.profile)
		}
	}
	if r.view = v; !s.Namespaces {
		r.view.fixed, r.view.pinned = nil, nil // Landlock has no rule against something within what it allows
	}
	base, err := r.scratch()
	if err != nil {
		return err
	}
	temp, err := r.temporary(base)
	if err != nil {
		return fmt.Errorf("sandbox: no temporary folder: %w", err)
	}
	s.Read, s.Write, s.Hidden, s.Links, s.Network = v.read, v.write, v.hidden, v.links, r.profile.Network && !s.Proxy
	s.Fixed, s.Pinned = r.view.fixed, r.view.pinned
	if r.profile.Temp != "" {
		s.Temp = temp
	} else {
		s.Temps = filepath.Dir(base)
	}
	r.control.order.Temp = []byte(temp)
	if !s.Namespaces {
		r.setCaches(temp, "")
		return nil
	}
	dir := goCache()
	if real, err := filepath.EvalSymlinks(dir); err == nil && within(real, v.read) {
		s.GoCache = real
	}
	r.setCaches(tempFolder, dir)
	return nil
}

// hideSockets hides the sockets of services in what the program sees: neither a view of files
// that cannot be written nor Landlock keeps programs from connecting to them. The kernel lists
// those that exist. Without namespaces, programs have no sockets to connect with.
func (v *view) hideSockets() {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		// ffff8881: 00000002 00000000 00010000 0001 01 12345 /run/service
		_, path, found := strings.Cut(strings.TrimSuffix(line, "\n"), " /")
		if path = "/" + path; !found || slices.Contains(list, path) {
			continue
		}
		list = append(list, path)
	}
	v.hide(list)
}

// filter makes the proxy for a profile that names hosts.
func (r *Run) filter(s *stage) error {
	hosts, err := parseHosts(r.profile.Hosts)
	if err != nil {
		return err
	}
	s.Proxy, r.proxy = true, newProxy(hosts)
	r.cleanup = append(r.cleanup, r.proxy.close)
	for _, v := range proxyVariables(proxyAddress) {
		r.setEnv(v[0], v[1])
	}
	return nil
}

// startProxy serves the program's network at a socket that the stage made there: a
// socket belongs to the network in which it was made, whoever has it.
func (r *Run) startProxy(k *keeper) error {
	var rep report
	fds, err := receive(k.conn, &rep)
	if err != nil {
		return fmt.Errorf("the process that starts programs has ended: %w", err)
	}
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "proxy")
		l, e := net.FileListener(f)
		_ = f.Close()
		if e != nil {
			return fmt.Errorf("the proxy cannot listen: %w", e)
		}
		r.proxy.serve(l)
	}
	if !rep.Listens {
		r.control.early = &rep
	}
	return nil
}

// start gives the program to a keeper.
func (r *Run) start() error {
	c := &r.control
	var err error
	if c.pipes, err = connect(r.cmd); err != nil {
		return err
	}
	k, err := takeKeeper(c.stage)
	if err == nil {
		if err = send(k.conn, message{Order: &c.order}, c.pipes.program); err != nil {
			err = fmt.Errorf("the process that starts programs has ended: %w", err)
		} else if r.proxy != nil {
			err = r.startProxy(k)
		}
		if err != nil {
			k.end()
		}
	}
	if err != nil {
		c.pipes.close()
		return err
	}
	c.pipes.run()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeper = k; c.stopped {
		k.hangUp()
	}
	return nil
}

// wait waits for the report of the stage, and for the output.
func (r *Run) wait() (ended, string, error) {
	c := &r.control
	var rep report
	var failed error
	if c.early != nil {
		rep = *c.early
	} else {
		_, failed = receive(c.keeper.conn, &rep)
	}
	c.mu.Lock()
	k, stopped := c.keeper, c.stopped
	c.keeper = nil
	c.mu.Unlock()
	k.settle()
	if failed != nil { // it was killed
		rep = report{Code: -1, Signal: int(unix.SIGKILL), Last: true}
	}
	if rep.Last || stopped || c.stage.Limits.CPU > 0 { // the time that the stage has used counts, too
		k.end()
	} else {
		k.rest()
	}
	err := c.pipes.wait(r.cmd.WaitDelay)
	e := ended{Exit: Exit{Code: rep.Code, Signal: syscall.Signal(rep.Signal), Rest: rep.Rest}, finished: rep.Finished}
	return e, rep.Problem, err
}

// stop tells the stage to end the program.
func (r *Run) stop() {
	c := &r.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped = true; c.keeper != nil {
		c.keeper.hangUp()
	}
}

// signal sends a signal to the program.
func (r *Run) signal(sig syscall.Signal) error {
	c := &r.control
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keeper == nil {
		return os.ErrProcessDone
	}
	return send(c.keeper.conn, message{Signal: int(sig)}, nil)
}

// hidden reports whether this process has called Hide and so cannot give its children
// their user namespace: a child has a hidden process's restrictions until it has
// started its program. Root is not restricted.
func hidden() bool {
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err == nil && dumpable != 1 && os.Geteuid() != 0
}

var available = sync.OnceValue(func() Support {
	var s Support
	if abi := landlockABI(); abi > 0 {
		s.Parts = append(s.Parts, Landlock)
		s.Missing = append(s.Missing, missingOfLandlock(abi)...)
	} else {
		s.Missing = append(s.Missing, "Landlock is not part of this kernel or is switched off")
	}
	if seccompWorks() {
		s.Parts = append(s.Parts, Seccomp)
	} else {
		s.Missing = append(s.Missing, "system calls cannot be filtered on this kernel or processor")
	}
	err := tryNamespaces()
	if err == nil {
		s.Parts = append(s.Parts, Namespaces)
		return s
	}
	s.Missing = append(s.Missing, missingOfNamespaces(err)...)
	return s
})

// missingOfNamespaces says what programs can, and cannot, do if there are none.
func missingOfNamespaces(err error) []string {
	return []string{
		fmt.Sprintf("this user cannot make namespaces (%v): so programs see the names and command lines of other processes", err),
		"without namespaces, programs can change the hooks and settings of git in the folders that they may write, and other files there that programs of yours obey: you are told after the run",
		"without namespaces, programs can change the permissions and times of the user's own files outside, but not their contents",
		"without namespaces, programs have no shared memory, messages and semaphores of System V, and set no attributes of files",
		"without namespaces, programs have no Unix sockets except pairs, no private /tmp, and no network even within themselves",
		"without namespaces, the network cannot be limited to hosts: a program has none, or all of it",
		"without namespaces, the limit of processes counts all processes of the system, and root has no such limit",
	}
}

// missingOfLandlock says what older kernels do not restrict. With namespaces, and with
// the filter of system calls, most of it does not matter.
func missingOfLandlock(abi int) (list []string) {
	if abi < 2 {
		list = append(list, "Landlock of this kernel refuses to move files between folders, unless there are namespaces")
	}
	if abi < 6 {
		list = append(list, "Landlock of this kernel does not restrict signals: without namespaces, programs can end other processes of the user, and by the numbers of its threads this one and the one that watches them, and would go on then")
	}
	return list
}

// tryNamespaces runs a stage that sets everything up and starts nothing.
func tryNamespaces() error {
	base, err := os.MkdirTemp("", "antiphon-")
	if err != nil {
		return fmt.Errorf("no temporary folder: %w", err)
	}
	defer os.Remove(base)
	k, err := stage{Namespaces: true, Temp: base}.startKeeper("")
	if err != nil {
		return err
	}
	defer k.end()
	var rep report
	if err := send(k.conn, message{Order: &order{}}, nil); err != nil {
		return err
	}
	if _, err := receive(k.conn, &rep); err != nil {
		return fmt.Errorf("the first process in them has ended: %w", err)
	}
	if rep.Problem != "" {
		return errors.New(rep.Problem)
	}
	return nil
}
