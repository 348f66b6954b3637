// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// A Permission is something that a profile may lack.
type Permission string

// The permissions that a program may have failed for.
const (
	PermissionRead    Permission = "read"
	PermissionWrite   Permission = "write"
	PermissionNetwork Permission = "network"
	PermissionSystem  Permission = "system" // a call that no program in a sandbox may make
	PermissionLimit   Permission = "limit"
)

// A Denial is a permission whose lack is probably why a program failed.
type Denial struct {
	Permission Permission
	Path       string // for reading and writing, absolute, if it is known
	Host       string // for the network, if it is known, with the port if that is known
	Entry      string // the entry of Profile.Hosts that would allow Host, or ""
	Reason     string // in words, for the model and the person
}

// Denials says which permissions a run probably lacked, from how it ended and from what
// it put out. The system does not report what it refused, so this goes by the usual
// texts of errors: it misses programs that print others, and a program can print such
// a text for another reason.
//
// A program that goes on after an error may end with success. Pass only what such a run
// wrote to its standard error: what it wrote elsewhere is its result, which can be about
// anything. Of these lines count those about something that the user may do and the profile
// does not allow.
func (r *Run) Denials(end Exit, output string) (list []Denial) {
	if r.cmd == nil || r.profile.Unconfined {
		return nil
	}
	add := func(d Denial) {
		if !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	if r.proxy != nil { // the one part that knows what it refused
		for _, refused := range r.proxy.refusals() {
			add(Denial{Permission: PermissionNetwork, Host: refused.host, Entry: refused.entry, Reason: refused.Error()})
		}
	}
	switch end.Signal {
	case sigXCPU:
		add(Denial{Permission: PermissionLimit, Reason: fmt.Sprintf("the sandbox limits processor time to %d s", r.profile.Limits.CPU)})
	case sigXFSZ:
		add(Denial{Permission: PermissionLimit, Reason: fmt.Sprintf("the sandbox limits files to %d bytes", r.profile.Limits.FileSize)})
	}
	lines := strings.Split(output, "\n")
	if len(lines) > mostLines {
		lines = lines[len(lines)-mostLines:] // the error is at the end
	}
	reader := denialReader{&r.profile, &r.view, r.cmd.Dir}
	if reader.dir == "" {
		reader.dir, _ = os.Getwd() // without it, relative paths are not looked at
	}
	for _, line := range lines {
		d, ok := reader.denial(line)
		if end.Code == 0 {
			ok = ok && r.certain(d, line)
		}
		if ok && (d.Permission != PermissionNetwork || r.proxy == nil || len(r.proxy.refusals()) == 0) {
			add(d)
		}
	}
	return list
}

// The signals of limits, by their numbers: not every system has their names.
const (
	sigXCPU syscall.Signal = 24
	sigXFSZ syscall.Signal = 25
)

// mostLines is how many lines of output are searched.
const mostLines = 200

var (
	refused = lazyregexp.New(`(?i)permission denied|operation not permitted|read-only file system|EACCES|EPERM|EROFS`)
	absent  = lazyregexp.New(`(?i)no such file or directory|cannot find|directory nonexistent|ENOENT`)
	offline = lazyregexp.New(`(?i)(could not|unable to|failed to) resolve|failure resolving|name resolution|name or service not known|network is unreachable|no such host|ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo|failed to connect to|dial (tcp|udp)|cannot open netlink`)
	// unresolved finds the host in the errors of curl, git, Go, Node.js, Python, wget and apt.
	unresolved = lazyregexp.New(`(?i)\b(?:resolve(?: host)?(?: address)?:?|resolving|lookup|ENOTFOUND|EAI_AGAIN) ['"‘]?([a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)+)`)
	exhausted  = lazyregexp.New(`(?i)cannot fork|fork: retry|resource temporarily unavailable|cannot allocate memory|out of memory|too many open files|file too large|std::bad_alloc|MemoryError`)
	aboutCall  = lazyregexp.New(`(?i)\b(mount|unshare|ptrace|chroot|setns|bpf|keyctl|io_uring)\b`)
	busy       = lazyregexp.New(`(?i)device or resource busy|EBUSY|cross-device link|EXDEV`) // of what something is mounted on
	unwritten  = lazyregexp.New(`(?i)read-only file system|EROFS`)
	absolute   = lazyregexp.New("(?:^|[\\s'\"`:=(,<>|‘“])(/[^\\s'\"`:;,()<>|‘’“”]+)")
	forked     = lazyregexp.New(`(?i)cannot fork|fork: retry|file too large`)
	creating   = lazyregexp.New(`(?i)creat|touch|mkdir|writ|save|copy|move|rename`)
	// reading finds errors of programs that only read.
	reading = lazyregexp.New(`^(cat|head|tail|less|more|ls|stat|wc|grep|rg|file|diff|cmp|od|hexdump|xxd|du|find|md5sum|sha\d+sum|readlink|realpath): `)
	own     = lazyregexp.New(`(?i)\b127\.[0-9.]+\b|\blocalhost\b|\[?::1\]?`)
	quoted  = lazyregexp.New("'([^']+)'|\"([^\"]+)\"|`([^`']+)['`]|‘([^’]+)’|“([^”]+)”")
)

// denialReader reads what a program put out.
type denialReader struct {
	*Profile
	view *view
	dir  string // the working folder
}

// denial reads a line of output.
func (p denialReader) denial(line string) (Denial, bool) {
	switch {
	case p.lacksNetwork() && offline.MatchString(line):
		return p.networkDenial(line), true
	case exhausted.MatchString(line) && p.Limits != Limits{}:
		return Denial{Permission: PermissionLimit, Reason: "the sandbox limits memory, processes and files: " + p.Limits.String()}, true
	case refused.MatchString(line):
		if d, ok := p.pathDenial(line); ok {
			return d, true
		}
		if unwritten.MatchString(line) {
			return Denial{Permission: PermissionWrite, Reason: "the sandbox does not allow writing there: " + clipped(line)}, true
		}
		if aboutCall.MatchString(line) {
			return Denial{Permission: PermissionSystem, Reason: "the sandbox does not allow programs to reach into other processes or to change the system"}, true
		}
		if p.lacksNetwork() && strings.Contains(strings.ToLower(line), "socket") {
			return p.networkDenial(line), true
		}
	case absent.MatchString(line), busy.MatchString(line):
		return p.pathDenial(line)
	}
	return Denial{}, false
}

// certain reports whether a line of a run that succeeded is about a lack of permission and
// nothing else: what it names can be used without the sandbox.
func (r *Run) certain(d Denial, line string) bool {
	switch d.Permission {
	case PermissionNetwork:
		return !own.MatchString(line)
	case PermissionLimit:
		return forked.MatchString(line)
	case PermissionWrite:
		says := refused.MatchString(line) || busy.MatchString(line) || creating.MatchString(strings.ReplaceAll(line, d.Path, ""))
		if d.Path == "" || !says && !r.redirectsTo(d.Path) {
			return false
		}
		at := d.Path
		if _, exists := existing(at); !exists {
			at = filepath.Dir(at)
		}
		return mayUse(at, true)
	case PermissionRead:
		return d.Path != "" && mayUse(d.Path, false)
	case PermissionSystem:
	}
	return true
}

// redirectsTo reports whether an argument of the command, such as a script, writes to a path
// by a redirection: shells say of it only that there is no such file.
func (r *Run) redirectsTo(path string) bool {
	return slices.ContainsFunc(r.cmd.Args, func(arg string) bool {
		for {
			before, after, found := strings.Cut(arg, path)
			if !found {
				return false
			}
			if strings.HasSuffix(strings.TrimRight(before, " \t'\"|&"), ">") {
				return true
			}
			arg = after
		}
	})
}

func (p *Profile) lacksNetwork() bool { return !p.Network || len(p.Hosts) > 0 }

// networkDenial reads the name of a host in a line, as far as usual programs say it.
func (p *Profile) networkDenial(line string) Denial {
	d := Denial{Permission: PermissionNetwork, Reason: "the sandbox does not allow the network"}
	if m := unresolved.FindStringSubmatch(line); m != nil {
		d.Host = plainName(m[1])
	}
	switch {
	case len(p.Hosts) > 0:
		d.Reason = "the sandbox allows the network only through its proxy, which HTTPS_PROXY names, and only to " + strings.Join(p.Hosts, ", ")
	case d.Host != "":
		d.Reason += ": " + d.Host
	}
	if d.Host != "" && len(p.Lacks(d.Host)) > 0 {
		d.Entry = d.Host
	}
	return d
}

// pathDenial finds a path in a line that the profile does not allow.
func (p denialReader) pathDenial(line string) (Denial, bool) {
	for _, path := range named(line) {
		if d, ok := p.about(path, line); ok {
			return d, true
		}
	}
	return Denial{}, false
}

// named returns what may be paths in a line that tells of an error: what is quoted, absolute
// paths, and the word before the error.
func named(line string) (list []string) {
	for _, found := range quoted.FindAllStringSubmatch(line, -1) {
		list = append(list, strings.Join(found[1:], ""))
	}
	for _, at := range absolute.FindAllStringSubmatchIndex(line, -1) {
		if at[2] > 0 || !strings.HasPrefix(line[at[3]:], ":") { // not the program that writes the line
			list = append(list, line[at[2]:at[3]])
		}
	}
	for _, problem := range []*lazyregexp.Regexp{refused, absent, busy} {
		at := problem.FindStringIndex(line)
		if at == nil {
			continue
		}
		before := strings.TrimRight(line[:at[0]], " :([")
		before = before[strings.LastIndex(before, ": ")+1:]
		if words := strings.Fields(before); len(words) > 0 {
			list = append(list, words[len(words)-1])
		}
	}
	return list
}

// about reports whether the profile forbids what a line says failed with a path. A relative
// path is taken for one in the working folder, and may be one in another.
func (p denialReader) about(text, line string) (Denial, bool) {
	path := filepath.Clean(text)
	relative := !filepath.IsAbs(path)
	if relative && p.dir == "" {
		return Denial{}, false
	}
	if relative {
		path = filepath.Join(p.dir, path)
	}
	real, exists := existing(path)
	denied := func(permission Permission, reason string) (Denial, bool) {
		return Denial{Permission: permission, Path: path, Reason: reason + clipped(text)}, true
	}
	isRefused := refused.MatchString(line)
	outside := !relative || isRefused || strings.HasPrefix(text, "../")
	creates := creating.MatchString(strings.ReplaceAll(line, text, ""))
	switch {
	case within(real, p.view.hidden):
		return denied(PermissionRead, "the sandbox hides ")
	case within(real, p.view.fixed) || slices.Contains(p.view.pinned, real):
		if !isRefused && !busy.MatchString(line) {
			return Denial{}, false
		}
		d, _ := denied(PermissionWrite, "the sandbox does not allow changing ")
		d.Reason += ", which other programs of the user run or obey"
		return d, true
	case within(real, p.view.write), busy.MatchString(line):
	case within(real, p.view.read):
		if isRefused {
			return denied(PermissionWrite, "the sandbox does not allow writing ")
		}
	case exists && outside && !creates:
		return denied(PermissionRead, "the sandbox does not show ")
	case !exists && reading.MatchString(line): // there is nothing to show
	case outside:
		if _, folder := existing(filepath.Dir(path)); folder || exists {
			return denied(PermissionWrite, "the sandbox does not allow writing outside of the workspace: ")
		}
	}
	return Denial{}, false
}

// mostShown is how much of a program's text a reason repeats.
const mostShown = 300

func clipped(text string) string {
	if len(text) > mostShown {
		return strings.ToValidUTF8(text[:mostShown], "") + "…"
	}
	return text
}

// existing returns what a path leads to, and whether it exists for this process.
func existing(path string) (string, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(folder, filepath.Base(path))
		}
		_, err := os.Lstat(path)
		return path, err == nil
	}
	return real, true
}

// String describes the limits that are set.
func (l Limits) String() string {
	var parts []string
	for _, part := range []struct {
		value int64
		text  string
	}{
		{l.Memory, "%d bytes of memory a process"}, {l.Processes, "%d processes"}, {l.Files, "%d open files"},
		{l.FileSize, "%d bytes a file"}, {l.CPU, "%d s of processor time"},
	} {
		if part.value > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.value))
		}
	}
	if len(parts) == 0 {
		return "no limits"
	}
	return strings.Join(parts, ", ")
}
