// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// targets is what the attempts to escape aim at.
type targets struct {
	Workspace, Outside string // a folder that may be written, and one that may not
	Home               string // with .ssh/id
	TCP, UDP           string // addresses of echo servers
	Abstract           string // the name of an abstract socket
	Socket, Datagrams  string // sockets in Outside
	Victim             int    // a process of the same user
	Unique             string // a name for files in shared folders
}

// An attempt tries to escape. It returns nil if it succeeded, and otherwise why not.
type attempt struct {
	name string
	// control reports that the attempt succeeds without a sandbox, for a user without
	// privileges: so it is a real one.
	control bool
	try     func(t targets) error
}

// marker is at the same address in each process of this executable.
var marker = [8]byte{'m', 'a', 'r', 'k', 'e', 'r'}

var attempts = []attempt{
	{"write outside", true, func(t targets) error { return os.WriteFile(t.Outside+"/new", []byte("x"), 0o600) }},
	{"write outside by another path", true, func(t targets) error {
		return os.WriteFile("/proc/self/root"+t.Outside+"/new2", []byte("x"), 0o600)
	}},
	{"write outside by openat2", true, func(t targets) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, t.Outside+"/new3", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o600})
		return closed(fd, err)
	}},
	{"write outside by a link", true, func(t targets) error {
		if err := os.Symlink(t.Outside+"/new4", t.Workspace+"/link"); err != nil {
			return err
		}
		return os.WriteFile(t.Workspace+"/link", []byte("x"), 0o600)
	}},
	{"write outside while a link changes", false, raceWithLink},
	{"truncate outside", true, func(t targets) error { return unix.Truncate(t.Outside+"/file", 1) }},
	{"link a file from outside", true, func(t targets) error { return os.Link(t.Outside+"/file", t.Workspace+"/hard") }},
	{"move a file from outside", true, func(t targets) error { return os.Rename(t.Outside+"/moved", t.Workspace+"/moved") }},
	{"delete outside", true, func(t targets) error { return os.Remove(t.Outside + "/doomed") }},
	{"make a folder outside", true, func(t targets) error { return os.Mkdir(t.Outside+"/dir", 0o700) }},
	{"set an attribute outside", false, func(t targets) error { return unix.Setxattr(t.Outside+"/file", "user.x", []byte("x"), 0) }},
	{"set an attribute outside by setxattrat", false, func(t targets) error {
		args, value := struct {
			value       uint64
			size, flags uint32
		}{size: 1}, [1]byte{'v'}
		args.value = uint64(uintptr(unsafe.Pointer(&value)))
		path, name := append([]byte(t.Outside+"/file"), 0), []byte("user.x\x00")
		at := unix.AT_FDCWD
		_, _, errno := unix.Syscall6(463, uintptr(at), uintptr(unsafe.Pointer(&path[0])), 0, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
		return failed(errno)
	}},
	{"read outside", true, func(t targets) error { _, err := os.ReadFile(t.Outside + "/file"); return err }},
	{"list outside", true, func(t targets) error { _, err := os.ReadDir(t.Outside); return err }},
	{"read ~/.ssh", true, func(t targets) error { _, err := os.ReadFile(t.Home + "/.ssh/id"); return err }},
	{"read ~/.ssh through /proc", true, func(t targets) error { _, err := os.ReadFile("/proc/self/root" + t.Home + "/.ssh/id"); return err }},
	{"write /proc/sys", false, func(targets) error {
		fd, err := unix.Open("/proc/sys/kernel/core_pattern", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		return closed(fd, err)
	}},
	{"make a device", false, func(t targets) error { return unix.Mknod(t.Workspace+"/dev", unix.S_IFBLK|0o600, 0) }},

	{"connect by TCP", true, func(t targets) error { return echo("tcp", t.TCP) }},
	{"send by UDP", true, func(t targets) error { return echo("udp", t.UDP) }},
	{"connect to an abstract socket", true, func(t targets) error { return echo("unix", t.Abstract) }},
	{"connect to a socket outside", true, func(t targets) error { return echo("unix", t.Socket) }},
	{"send to a socket outside from a pair", true, func(t targets) error { return fromPair(unix.SOCK_DGRAM, t.Datagrams) }},
	{"send to a socket outside from a raw pair", true, func(t targets) error { return fromPair(unix.SOCK_RAW, t.Datagrams) }},
	{"socket for packets", false, func(targets) error { return socket(unix.AF_PACKET, unix.SOCK_RAW) }},
	{"socket for virtual machines", false, func(targets) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) }},
	{"socket for ciphers", false, func(targets) error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET) }},

	// One byte is enough to know, and none is shown.
	{"read /proc/1/environ", false, func(targets) error { return readable("/proc/1/environ") }},
	{"read the environment of the parent", false, func(targets) error { return readable(fmt.Sprintf("/proc/%d/environ", os.Getppid())) }},
	{"read the memory of the parent", false, func(targets) error { return readable(fmt.Sprintf("/proc/%d/maps", os.Getppid())) }},
	{"read the environment of a process", true, func(t targets) error { return readable(fmt.Sprintf("/proc/%d/environ", t.Victim)) }},
	{"open the memory of a process", true, func(t targets) error {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", t.Victim), os.O_RDWR, 0)
		return errors.Join(err, f.Close())
	}},
	{"read the memory of a process", true, func(t targets) error {
		local := make([]byte, len(marker))
		from := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&marker)), Len: len(marker)}
		to := unix.Iovec{Base: &local[0]}
		to.SetLen(len(local))
		_, err := unix.ProcessVMReadv(t.Victim, []unix.Iovec{to}, []unix.RemoteIovec{from}, 0)
		return err
	}},
	{"trace a process", true, func(t targets) error {
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(t.Victim), 0, 0, 0, 0)
		return failed(errno)
	}},
	{"trace the parent", false, func(targets) error {
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(os.Getppid()), 0, 0, 0, 0)
		return failed(errno)
	}},
	{"take a file of a process", true, func(t targets) error {
		fd, err := unix.PidfdOpen(t.Victim, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	}},
	{"schedule a process", true, func(t targets) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(t.Victim, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(t.Victim, &set)
	}},
	{"schedule the parent", false, func(targets) error {
		var priority int32
		_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(os.Getppid()), unix.SCHED_BATCH, uintptr(unsafe.Pointer(&priority)))
		return failed(errno)
	}},
	{"give a process another priority for files", true, func(t targets) error {
		_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(t.Victim), 2<<13|4)
		return failed(errno)
	}},
	{"find shared memory of a process", true, func(t targets) error {
		_, err := unix.SysvShmGet(t.Victim, 1, 0)
		return err
	}},
	{"signal a process", true, func(t targets) error { return unix.Kill(t.Victim, unix.SIGCONT) }},

	{"make a user namespace", true, func(targets) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return cmd.Run()
	}},
	{"leave a namespace", false, func(targets) error { return unix.Unshare(unix.CLONE_NEWNS) }},
	{"mount", false, func(t targets) error { return unix.Mount("tmpfs", t.Workspace, "tmpfs", 0, "") }},
	{"take off a mount", false, func(targets) error { return unix.Unmount("/tmp", unix.MNT_DETACH) }},
	{"change the root", false, func(t targets) error { return unix.Chroot(t.Workspace) }},
	{"io_uring_setup", false, func(targets) error {
		var params [120]byte
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		return failed(errno)
	}},
	{"keyctl", true, func(targets) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err }},
	{"bpf", false, func(targets) error {
		_, _, errno := unix.Syscall(unix.SYS_BPF, 0, 0, 0)
		return only(errno, unix.EPERM)
	}},
	{"perf_event_open", false, func(targets) error {
		_, err := unix.PerfEventOpen(&unix.PerfEventAttr{}, 0, -1, -1, 0)
		return only(err, unix.EPERM)
	}},
	{"userfaultfd", false, func(targets) error {
		_, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, 1, 0, 0)
		return only(errno, unix.EPERM)
	}},
	{"kexec", false, func(targets) error {
		_, _, errno := unix.Syscall6(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0, 0, 0)
		return failed(errno)
	}},
	{"type into a terminal", false, func(targets) error { return only(unix.IoctlSetInt(0, unix.TIOCSTI, 0), unix.EPERM) }},

	{"chmod u+s", true, func(t targets) error { return setid(t, func(f string) error { return unix.Chmod(f, 0o4755) }) }},
	{"chmod g+s", true, func(t targets) error { return setid(t, func(f string) error { return unix.Chmod(f, 0o2755) }) }},
	{"fchmodat u+s", true, func(t targets) error {
		return setid(t, func(f string) error { return unix.Fchmodat(unix.AT_FDCWD, f, 0o4755, 0) })
	}},
	{"fchmodat2 u+s", true, func(t targets) error {
		return setid(t, func(f string) error { return unix.Fchmodat(unix.AT_FDCWD, f, 0o4755, unix.AT_SYMLINK_NOFOLLOW) })
	}},
	{"make a file with u+s", true, func(t targets) error {
		fd, err := unix.Open(t.Workspace+"/setuid", unix.O_CREAT|unix.O_WRONLY, 0o4755)
		return closed(fd, err)
	}},
	{"make a node with u+s", true, func(t targets) error { return unix.Mknod(t.Workspace+"/setuid2", unix.S_IFREG|0o4755, 0) }},
	{"make an unnamed file with u+s", true, func(t targets) error {
		fd, err := unix.Open(t.Workspace, unix.O_TMPFILE|unix.O_WRONLY, 0o4755)
		return closed(fd, err)
	}},

	{"raise the limit of processes", true, func(targets) error { return raise(unix.RLIMIT_NPROC) }},
	{"raise the limit of memory", true, func(targets) error { return raise(unix.RLIMIT_DATA) }},
	{"raise a limit from an odd address", true, raiseFromOddAddress},
}

func failed(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// only reports a success unless the error is the expected one: others would only say
// that the attempt is not a good one.
func only(err error, want unix.Errno) error {
	if errors.Is(err, want) {
		return err
	}
	return nil
}

func closed(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}

func socket(family, kind int) error {
	fd, err := unix.Socket(family, kind, 0)
	return closed(fd, err)
}

// echo sends a byte to a server outside that answers.
func echo(network, address string) error {
	c, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte{1}); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // a UDP socket without a peer may get no error
	_, err = c.Read(make([]byte, 1))
	return err
}

func fromPair(kind int, to string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: to})
}

// setid reports whether a file gets a bit that lets it run as its owner.
func setid(t targets, change func(file string) error) error {
	file := t.Workspace + "/mode"
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		return err
	}
	defer os.Remove(file)
	if err := change(file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) == 0 {
		return errors.New("the bit is not set")
	}
	return err
}

func raise(resource int) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(resource, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return unix.Setrlimit(resource, &l)
}

// raiseFromOddAddress passes the new limit in memory whose address has a lower half of
// zero, which a filter could take for no address.
func raiseFromOddAddress(targets) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	wide := uint64(0x7e00) << 32
	address := uintptr(wide)
	_, _, errno := unix.Syscall6(unix.SYS_MMAP, address, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	var fds [2]int
	if errno != 0 || unix.Pipe(fds[:]) != nil {
		return nil // no proof
	}
	// The kernel copies the new limit there.
	_, _, _ = unix.Syscall(unix.SYS_WRITE, uintptr(fds[1]), uintptr(unsafe.Pointer(&l)), unsafe.Sizeof(l))
	_, _, _ = unix.Syscall(unix.SYS_READ, uintptr(fds[0]), address, unsafe.Sizeof(l))
	_, _, errno = unix.Syscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, address, 0, 0, 0)
	return failed(errno)
}

// raceWithLink writes in a folder that is replaced by a link to a folder outside at the
// same time.
func raceWithLink(t targets) error {
	dir, link, place := t.Workspace+"/race-dir", t.Workspace+"/race-link", t.Workspace+"/race"
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Symlink(t.Outside, link), os.Rename(dir, place)); err != nil {
		return nil // no proof
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3000 {
			_ = unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, place, unix.RENAME_EXCHANGE)
		}
	}()
	for through := 0; ; {
		select {
		case <-done:
			return errors.New("no write came through")
		default:
		}
		if os.WriteFile(place+"/raced", []byte("x"), 0o600) == nil {
			through++
		}
	}
}

func init() {
	// attempts makes all attempts that are named, or all, and prints the outcome of each
	// as an object of JSON.
	roles["attempts"] = func(args []string) {
		var t targets
		if err := json.Unmarshal([]byte(args[0]), &t); err != nil {
			panic(err)
		}
		outcome := map[string]string{}
		for _, a := range attempts {
			if len(args) > 1 && !a.control {
				continue
			}
			outcome[a.name] = "succeeded"
			if err := a.try(t); err != nil {
				outcome[a.name] = "failed: " + err.Error()
			}
		}
		_ = json.NewEncoder(os.Stdout).Encode(outcome)
	}
	// victim waits until its input ends. It has shared memory, whose key is its number.
	roles["victim"] = func([]string) {
		memory, err := unix.SysvShmGet(os.Getpid(), 1, unix.IPC_CREAT|0o600)
		if err != nil {
			panic(err)
		}
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1))
		_, _ = unix.SysvShmCtl(memory, unix.IPC_RMID, nil)
	}
	// survivor ends its main thread, so that the system says that it has ended, and goes on.
	roles["survivor"] = func([]string) {
		debug.SetGCPercent(-1) // the runtime would wait for the thread
		go func() {
			runtime.LockOSThread()
			for {
				stat, err := os.ReadFile("/proc/self/stat")
				if err != nil {
					panic(err)
				}
				if _, state, _ := strings.Cut(string(stat), ") "); state[0] == 'Z' {
					break
				}
			}
			_ = os.WriteFile("ended", []byte("x\n"), 0o600) // a pipe
			_ = unix.Nanosleep(&unix.Timespec{Sec: 1000}, nil)
		}()
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	}
	if len(os.Args) > 1 && os.Args[1] == "survivor" {
		runtime.LockOSThread() // to the main thread
	}
	// bomb starts copies of itself, which do the same, and prints how many it could start
	// itself. With "once", the copies only wait.
	roles["bomb"] = func(args []string) {
		executable, _ := os.Executable()
		for n := 0; ; n++ {
			cmd := exec.Command("/bin/sleep", "1000")
			if len(args) == 0 {
				cmd = exec.Command(executable, "bomb")
			}
			if err := cmd.Start(); err != nil {
				fmt.Printf("%d %v\n", n, err)
				return
			}
		}
	}
	// eat uses memory, so many MiB, and all of it.
	roles["eat"] = func(args []string) {
		most, _ := strconv.Atoi(args[0])
		var all [][]byte
		for range most {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
		}
		fmt.Println("ate", len(all))
	}
	roles["spin"] = func([]string) {
		for i := 0; ; i++ {
			marker[7] = byte(i)
		}
	}
	roles["dial"] = func(args []string) {
		if err := echo("tcp", args[0]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
