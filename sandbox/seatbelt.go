// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// This file writes profiles in the language of Seatbelt. It is part of all systems, so that
// the text is tested on all of them.

// A reach is the network that a program has on macOS.
type reach struct {
	all  bool
	port string // of the proxy on loopback, which is then all that it reaches
}

// seatbeltBase is the beginning of all profiles. Programs see whether a file exists anywhere,
// because without that no path can be resolved. What is allowed of the system's state does
// not contain the arguments and the environment of other processes (kern.procargs2).
const seatbeltBase = `(version 1)
(deny default)
(import "system.sb")
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow file-read-metadata)
(allow sysctl-read
  (sysctl-name-prefix "hw.")
  (sysctl-name-prefix "machdep.")
  (sysctl-name-prefix "vm.")
  (sysctl-name-prefix "kern.proc.pid.")
  (sysctl-name-prefix "kern.proc.pgrp.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.boottime")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.iossupportversion")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.maxprocperuid")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "sysctl.proc_cputype"))
(allow file-read* file-write* (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* (literal "/") (literal "/dev") (literal "/dev/random") (literal "/dev/urandom") (subpath "/dev/fd"))
`

// seatbeltSystem lists what programs read of macOS in addition to the usual folders.
var seatbeltSystem = []string{"/System", "/Library", "/Applications/Xcode.app", "/private/etc", "/private/var/db/timezone", "/private/var/select"}

// seatbeltNetwork allows the internet and the name service of the system. The sockets of
// services on this machine, such as Docker and agents for keys, are files, and stay closed.
const seatbeltNetwork = `(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-inbound (local ip "*:*"))
(allow network-bind (local ip "*:*"))
(allow system-socket)
(allow mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.trustd.agent"))
`

// seatbeltProfile writes the profile for a view. The last rule that fits decides.
func seatbeltProfile(v view, temp string, network reach) string {
	var b strings.Builder
	b.WriteString(seatbeltBase)
	rules := func(rule, filter string, lists ...[]string) {
		for _, path := range slices.Concat(lists...) {
			b.WriteString("(" + rule + " (" + filter + " " + seatbeltString(path) + "))\n")
		}
	}
	rules("allow file-read*", "subpath", seatbeltSystem, v.read, v.write, []string{temp})
	rules("allow file-write*", "subpath", v.write, []string{temp})
	switch {
	case network.port != "":
		b.WriteString("(allow network-outbound (remote ip " + seatbeltString("localhost:"+network.port) + "))\n(allow system-socket)\n")
	case network.all:
		b.WriteString(seatbeltNetwork)
	}
	var absent []string
	if v.scan != nil {
		absent = v.scan.Absent()
	}
	kept := slices.Concat(v.fixed, absent)
	rules("deny file-write*", "subpath", kept)
	rules("deny file-read* file-write*", "subpath", v.hidden)
	// Rules are about paths: what is moved, also by moving a folder around it, has other rules.
	rules("deny file-write-unlink", "literal", v.around(slices.Concat(kept, v.hidden, v.pinned)))
	return b.String()
}

// around returns the paths that lie in the folders that may be written, and those of the
// folders around them.
func (v *view) around(paths []string) (list []string) {
	for _, p := range paths {
		for ; within(p, v.write) && p != "/"; p = path.Dir(p) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// seatbeltString writes a string. The language knows no escapes that all versions read
// alike but those of the two characters that would end it; all others stand for themselves.
func seatbeltString(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
