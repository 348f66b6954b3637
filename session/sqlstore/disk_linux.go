// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"syscall"
)

// fileSystem returns the kind of the file system that holds path. If a database
// there may lose committed data, weak says why; otherwise it is empty.
func fileSystem(path string) (kind, weak string) {
	var fs syscall.Statfs_t
	if syscall.Statfs(path, &fs) != nil {
		return "unknown", ""
	}
	// The cases are the magic numbers of statfs(2).
	switch uint32(fs.Type) {
	case 0x01021994, 0x858458f6:
		return "tmpfs", "it is in memory: all is lost when the machine stops"
	case 0x6969:
		return "nfs", "the store needs a local disk: locks and durability over a network are not certain"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "smb", "the store needs a local disk: locks and durability over a network are not certain"
	case 0xef53:
		return "ext4", ""
	case 0x9123683e:
		return "btrfs", ""
	case 0x58465342:
		return "xfs", ""
	case 0x794c7630:
		return "overlay", ""
	}
	return fmt.Sprintf("type %x", uint32(fs.Type)), ""
}
