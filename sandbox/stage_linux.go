// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stageName is the name by which this executable knows that it is started as a stage.
const stageName = "antiphon-sandbox-stage"

// stage tells the copy of this executable what to set up. It then waits for orders.
//
// The copy is the supervisor of a program and all of its processes. In namespaces, it is
// the first process of its own process namespace, and the kernel ends the others with
// it. Without namespaces, processes that lose their parent become its children, so that
// it finds them and ends them. The restrictions, and the view of files and the network
// of one program, are those of a thread, which starts the program and ends; the rest of
// the supervisor stays outside of them, so that the program cannot signal it.
//
// If the parent is hidden, see [hidden], there is one more process: Launch means to
// start another copy in namespaces, and to wait for it.
type stage struct {
	Unconfined  bool
	Namespaces  bool
	Launch      bool
	Landlock    int // the version of Landlock to use, or 0
	Read, Write []string
	Hidden      []string
	Fixed       []string `json:"-"` // these come with the first message
	Pinned      []string `json:"-"`
	Links       map[string]string
	Temp, Temps string // the temporary folder of all programs, or where that of each one is
	Root        string // an empty folder
	GoCache     string // the cache of the Go compiler, which each program covers with its own; or ""
	Network     bool
	Proxy       bool // the parent serves the network of each program
	Limits      Limits

	covered bool     // the cache of the Go compiler, for the program that starts
	conn    *os.File // to the parent
	signals chan os.Signal
}

// lifeline is the number of the connection to the parent. If the parent closes it, also
// because it has ended, the stage ends its program and then itself.
const lifeline = 3

// message is what the parent tells a stage.
type message struct {
	Protect *protect `json:",omitempty"` // the first message, and no other
	Order   *order   `json:",omitempty"` // with the files of the program
	Signal  int      `json:",omitempty"` // for the program that runs
}

// protect is what the programs of a stage must not change, and what they must not move.
type protect struct{ Fixed, Pinned []string }

// order is a program to run. An order without a path sets everything up and runs
// nothing. What may not be valid text is in bytes.
type order struct {
	Path, Dir, Temp []byte
	Args, Env       [][]byte
}

// report is what a stage tells its parent at the end of each order.
type report struct {
	Problem      string `json:",omitempty"` // the program was not started
	Code, Signal int
	Rest         bool // processes were left and ended
	Finished     bool // the program ended before the parent wanted it to
	Last         bool // the stage ends now
	Listens      bool `json:",omitempty"` // not the end: with it comes the socket of the proxy
}

// delivery is a message with its files.
type delivery struct {
	message
	files    []int
	reported chan struct{} // closed when the parent knows how the program ended
}

func (d *delivery) close() {
	for _, fd := range d.files {
		_ = unix.Close(fd)
	}
	d.files = nil
}

func byteStrings(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func stringsOf(list [][]byte) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// exitSetup is the exit code of a copy that is not a stage.
const exitSetup = 125

// init runs the stage if this process is one, and does not return then.
func init() {
	if len(os.Args) != 2 || os.Args[0] != stageName {
		return
	}
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return // whoever starts such a program must not choose what it starts
	}
	var s stage
	if err := json.Unmarshal([]byte(os.Args[1]), &s); err != nil {
		os.Exit(exitSetup)
	}
	forget(os.Args[1])
	s.run()
}

// forget overwrites an argument of this process. Everybody can read the command line of a process,
// and the program in the sandbox need not know what it may read and what is hidden.
func forget(argument string) {
	// The runtime does not copy arguments: the text is where the kernel shows it from, which is not
	// read-only memory.
	clear(unsafe.Slice(unsafe.StringData(argument), len(argument)))
}

// argv returns the arguments that start the stage.
func (s *stage) argv() ([]string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return []string{stageName, string(text)}, nil
}

// ownNamespaces sets what a stage in namespaces starts with.
func (s *stage) ownNamespaces(attr *syscall.SysProcAttr) {
	attr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID
	// The capabilities are those of the user namespace, and only root would keep them
	// when the stage starts.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	uid, gid := os.Getuid(), os.Getgid()
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
}

// run does the work of the stage and exits.
func (s *stage) run() {
	if err := keepFiles(); err != nil {
		os.Exit(exitSetup)
	}
	conn := os.NewFile(lifeline, "sandbox")
	s.conn = conn
	if s.Launch {
		os.Exit(s.launch(conn))
	}
	inbox := make(chan *delivery)
	go listen(conn, inbox)
	s.signals = make(chan os.Signal, 8)
	signal.Notify(s.signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	first, ok := <-inbox
	if !ok || first.Protect == nil {
		os.Exit(0)
	}
	s.Fixed, s.Pinned = first.Protect.Fixed, first.Protect.Pinned
	err := s.setUp()
	for d := range inbox {
		if d.Order == nil {
			continue // a signal for a program that has ended
		}
		rep := report{Last: true}
		if err != nil {
			rep.Problem = err.Error()
		} else {
			rep = s.obey(d, inbox)
		}
		d.close()
		err := send(conn, rep, nil)
		close(d.reported)
		if err != nil || rep.Last {
			break
		}
	}
	os.Exit(0)
}

// keepFiles keeps programs from getting the files that are open in this process, also those
// that the parent of its parent has left open: a terminal, or a socket of a service.
func keepFiles() error {
	err := unix.CloseRange(lifeline, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd") // of kernels before 5.11
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= lifeline {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// listen reads messages until the parent has closed the connection.
func listen(conn *os.File, inbox chan<- *delivery) {
	defer close(inbox)
	for {
		d := &delivery{reported: make(chan struct{})}
		var err error
		if d.files, err = receive(conn, &d.message); err != nil {
			d.close()
			return
		}
		inbox <- d
	}
}

// setUp does what is done once for all programs.
func (s *stage) setUp() error {
	if s.Namespaces {
		if err := s.mountAll(); err != nil {
			return err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("the processes of the program cannot be collected: %w", err)
	}
	// Nothing that the program can do to a process of its user works on this one.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	return s.limitAll()
}

// obey runs a program and waits for it.
func (s *stage) obey(d *delivery, inbox <-chan *delivery) report {
	for len(s.signals) > 0 {
		<-s.signals // for an earlier program
	}
	pid, err := s.start(d)
	d.close()
	switch {
	case err != nil:
		return report{Problem: err.Error()}
	case pid == 0:
		return report{}
	}
	return s.supervise(pid, inbox)
}

// launch starts the stage again in namespaces and waits for it.
func (s *stage) launch(conn *os.File) int {
	next := *s
	next.Launch = false
	args, err := next.argv()
	if err != nil {
		return exitSetup
	}
	sys := &syscall.SysProcAttr{}
	s.ownNamespaces(sys)
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2, lifeline}, Sys: sys}
	pid, err := syscall.ForkExec(executable, args, attr)
	if err != nil {
		_ = send(conn, report{Problem: fmt.Sprintf("namespaces cannot be made: %v", err), Last: true}, nil)
		return exitSetup
	}
	_ = conn.Close()
	var ws unix.WaitStatus
	for {
		if _, err = unix.Wait4(pid, &ws, 0, nil); !errors.Is(err, unix.EINTR) {
			return ws.ExitStatus()
		}
	}
}

// start starts the program on a thread with the restrictions. It returns 0 if the order
// names no program.
func (s *stage) start(d *delivery) (pid int, err error) {
	lower, restore := s.limitsOfChildren()
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and the thread ends with this function
		func() {
			defer close(done)
			defer func() {
				if e := recover(); e != nil {
					err = fmt.Errorf("setting up the sandbox: %v", e)
				}
			}()
			pid, err = s.startHere(d, lower)
		}()
		// The thread holds the view of the program. To take it down takes a while, which
		// the end of the program need not wait for.
		<-d.reported
	}()
	<-done
	restore()
	return pid, err
}

func (s *stage) startHere(d *delivery, lower func() error) (int, error) {
	if s.Namespaces {
		if err := s.ownView(string(d.Order.Temp)); err != nil {
			return 0, err
		}
	}
	if len(d.Order.Path) == 0 {
		return 0, nil
	}
	if err := lower(); err != nil {
		return 0, err
	}
	if err := s.restrict(string(d.Order.Temp)); err != nil {
		return 0, err
	}
	path, dir := string(d.Order.Path), string(d.Order.Dir)
	attr := &syscall.ProcAttr{Dir: dir, Env: s.environment(stringsOf(d.Order.Env)), Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, fd := range d.files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(path, stringsOf(d.Order.Args), attr)
	if err != nil {
		return 0, notStarted(dir, err)
	}
	return pid, nil
}

// environment returns the variables of a program, without the cache of the Go compiler if
// the program could not add to it.
func (s *stage) environment(env []string) []string {
	if s.GoCache == "" || s.covered {
		return env
	}
	return slices.DeleteFunc(env, func(v string) bool {
		dir, ok := strings.CutPrefix(v, "GOCACHE=")
		real, err := filepath.EvalSymlinks(dir)
		return ok && err == nil && real == s.GoCache
	})
}

// ownView gives this thread, and the program that it starts, what no other program
// shares: mounts, with a temporary folder, shared memory and a network.
func (s *stage) ownView(temp string) error {
	flags := unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if !s.Network {
		flags |= unix.CLONE_NEWNET
	}
	if err := unix.Unshare(flags); err != nil {
		return fmt.Errorf("namespaces cannot be made: %w", err)
	}
	if !s.Network {
		if err := loopbackUp(); err != nil {
			return err
		}
	}
	if s.Proxy {
		if err := s.listenForProxy(); err != nil {
			return fmt.Errorf("the proxy: %w", err)
		}
	}
	return s.mountOwn(temp)
}

// Where programs find the proxy, in their own network.
const (
	proxyPort    = 47128
	proxyAddress = "127.0.0.1:47128"
)

// listenForProxy makes a socket in the network of this thread and gives it to the parent.
func (s *stage) listenForProxy() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "proxy")
	defer f.Close()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(fd, mostConnections); err != nil {
		return err
	}
	return send(s.conn, report{Listens: true}, []*os.File{f})
}

// notStarted explains why the program could not be started.
func notStarted(dir string, err error) error {
	if _, e := os.Stat(dir); e != nil {
		return fmt.Errorf("the working directory %s is not visible in the sandbox", dir)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("the program cannot be started (%w): it is not executable, or the sandbox does not let it be read", err)
	}
	return fmt.Errorf("the program cannot be started: %w", err)
}

// restrict takes away the rights of this thread and of what it will start.
func (s *stage) restrict(temp string) error {
	if s.Unconfined {
		return nil
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities cannot be given up: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs cannot be set: %w", err)
	}
	if s.Landlock > 0 {
		if err := s.landlock(temp); err != nil {
			return fmt.Errorf("Landlock: %w", err) //nolint:staticcheck // a name
		}
	}
	if err := s.seccomp(); err != nil {
		return fmt.Errorf("the filter of system calls: %w", err)
	}
	return nil
}

// endingTime is how long the kernel may take to end processes.
const endingTime = 5 * time.Second

// supervise waits for the program, ends what it left behind, and passes signals on to
// it. When the parent ends the connection or is gone, it ends all at once.
func (s *stage) supervise(program int, inbox <-chan *delivery) (rep report) {
	ended, all := make(chan unix.WaitStatus, 1), make(chan struct{})
	go reap(program, ended, all)
	gone := false
	for waiting := true; waiting; {
		select {
		case ws := <-ended:
			rep.Finished, waiting = true, false
			if rep.Code = ws.ExitStatus(); ws.Signaled() {
				rep.Code, rep.Signal = -1, int(ws.Signal())
			}
		case sig := <-s.signals:
			if n, ok := sig.(syscall.Signal); ok {
				_ = unix.Kill(-program, n)
			}
		case d, ok := <-inbox:
			if ok {
				_ = unix.Kill(-program, syscall.Signal(d.Signal))
				continue
			}
			rep.Code, rep.Signal, waiting, gone = -1, int(unix.SIGKILL), false, true
		}
	}
	for linger := time.After(lingerTime); !gone && !rep.Rest; {
		select {
		case <-all:
			return rep
		case _, ok := <-inbox:
			gone = !ok
		case <-linger:
			rep.Rest = true
		}
	}
	rep.Last = !s.endAll(all) || gone // the kernel ends what is left in namespaces with this process
	return rep
}

// reap collects all processes that end, until none is left.
func reap(program int, ended chan<- unix.WaitStatus, all chan<- struct{}) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			close(all)
			return
		case pid == program:
			ended <- ws
		}
	}
}

// endAll ends all processes below this one, and reports whether none is left.
func (s *stage) endAll(all <-chan struct{}) bool {
	limit := time.After(endingTime)
	for {
		if s.Namespaces {
			_ = unix.Kill(-1, unix.SIGKILL) // all of this namespace but this one
		} else {
			endDescendants()
		}
		select {
		case <-all:
			return true
		case <-limit:
			return false
		case <-time.After(time.Millisecond): // those whose parents have ended are ours now
		}
	}
}

// endDescendants ends the processes below this one. It stops them first, until there
// are no new ones: a process that is stopped cannot start others meanwhile. Each is held by
// a file of the kernel, because its number may be that of any other process of the
// user as soon as it has ended.
func endDescendants() {
	stopped := map[int]int{} // the files that hold them
	for grown := true; grown; {
		grown = false
		for _, pid := range descendants() {
			if _, ok := stopped[pid]; ok {
				continue
			}
			held, err := unix.PidfdOpen(pid, 0)
			if errors.Is(err, unix.ESRCH) {
				continue // it has ended
			}
			if err != nil {
				held = -1 // an old kernel, or too many files are open
			}
			if isBelow(pid) { // what held holds
				signalHeld(pid, held, unix.SIGSTOP)
				stopped[pid], grown = held, true
			} else if held >= 0 {
				_ = unix.Close(held)
			}
		}
	}
	for pid, held := range stopped {
		signalHeld(pid, held, unix.SIGKILL)
		if held >= 0 {
			_ = unix.Close(held)
		}
	}
}

func signalHeld(pid, held int, sig unix.Signal) {
	if held >= 0 {
		_ = unix.PidfdSendSignal(held, sig, nil, 0)
		return
	}
	_ = unix.Kill(pid, sig)
}

// isBelow reports whether a process descends from this one.
func isBelow(pid int) bool {
	for pid > 1 {
		parent, ok := parentOf(pid)
		if !ok {
			return false
		}
		if parent == os.Getpid() {
			return true
		}
		pid = parent
	}
	return false
}

// descendants lists the processes below this one.
func descendants() (list []int) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range names {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	list = append(list, children[os.Getpid()]...)
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// parentOf returns the parent of a process. The state of a process is no sign that it has
// ended: it is Z also if its main thread has ended and others go on.
func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name before may hold anything
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}
