// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// mend returns a PNG without its ancillary chunks that have a wrong checksum, and
// the names of these chunks. The decoder rejects the whole image for one such chunk,
// though the pixels do not depend on it. Other data is returned unchanged.
func mend(data []byte) (mended []byte, lost []string) {
	if !strings.HasPrefix(string(data[:min(len(data), len(pngSignature))]), pngSignature) {
		return data, nil
	}
	const around = 12 // length, name and checksum
	kept := len(pngSignature)
	for at := kept; at+around <= len(data); {
		end := int64(at) + around + int64(binary.BigEndian.Uint32(data[at:]))
		if end > int64(len(data)) {
			break
		}
		body, name := data[at+4:end-4], data[at+4:at+8]
		if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(data[end-4:]) && ancillary(name) {
			if mended == nil {
				mended = slices.Clone(data[:len(pngSignature)])
			}
			mended = append(mended, data[kept:at]...)
			kept = int(end)
			if !slices.Contains(lost, string(name)) {
				lost = append(lost, string(name))
			}
		}
		at = int(end)
	}
	if mended == nil {
		return data, nil
	}
	if kept > len(pngSignature) {
		mended = append(mended, data[kept:]...)
	}
	return mended, lost
}

// ancillary reports whether a chunk with that name is optional: its name has four
// letters, the first one in lower case.
func ancillary(name []byte) bool {
	for _, c := range name {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return name[0]&0x20 != 0
}
