// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"os"
	"slices"
	"sort"

	"github.com/antiphon-go/antiphon/internal/spool"
)

// past holds the finished lines for the full screen: the newest in memory, and the others in a temporary file, so that memory
// does not grow with the transcript. The file is encrypted with a key that only this process has, because the store of the
// session may be encrypted, and has no name where the system allows that. Lines are counted from the first one that there ever was.
type past struct {
	recent []string
	bytes  int // of recent, with what a string takes
	last   int // the number of the line behind the newest one

	file   *os.File
	key    cipher.Block
	size   int64    // of the file
	blocks []packed // in the file, in order, without a gap before recent
	read   packed   // the block that was read last, and its lines
	lines  []string
	failed bool // there is no file, or it takes no more
}

// packed is some lines in the file.
type packed struct {
	first, count int
	at           int64
	size         int
}

const (
	// mostRecent is how many bytes of lines are in memory, and mostPacked how many of them go to the file at once. Without a file,
	// mostWithout are kept.
	mostRecent  = 96 << 10
	mostPacked  = 48 << 10
	mostWithout = 1 << 20
	// mostFile is the size of the file from which on a new one is begun.
	mostFile = 1 << 30
	// ofLine is what a line takes in memory besides its bytes.
	ofLine = 16
)

// begin returns the number of the first line that is kept, and end that of the one behind the last.
func (p *past) begin() int {
	if len(p.blocks) > 0 {
		return p.blocks[0].first
	}
	return p.last - len(p.recent)
}

func (p *past) end() int { return p.last }

// add adds a line. It reports whether older ones are not kept any more.
func (p *past) add(line string) (dropped bool) {
	p.recent = append(p.recent, line)
	p.bytes += len(line) + ofLine
	p.last++
	for p.bytes > mostRecent && len(p.recent) > 1 && !p.failed {
		dropped = p.pack() || dropped
	}
	if p.failed && p.bytes > mostWithout {
		p.forget()
		dropped = true
	}
	return dropped
}

// oldest returns how many of the oldest lines in memory have about so many bytes together, and how many these are.
func (p *past) oldest(most int) (count, bytes int) {
	for count < len(p.recent)-1 && bytes < most {
		bytes += len(p.recent[count]) + ofLine
		count++
	}
	return count, bytes
}

// forget drops the older half of the lines in memory, and all before them.
func (p *past) forget() {
	count, bytes := p.oldest(mostWithout / 2)
	p.blocks, p.read, p.lines = nil, packed{}, nil
	p.recent, p.bytes = slices.Clone(p.recent[count:]), p.bytes-bytes
}

// pack moves the oldest lines in memory to the file.
func (p *past) pack() (dropped bool) {
	count, bytes := p.oldest(mostPacked)
	if p.size > mostFile {
		dropped = true
		p.close()
	}
	var text []byte
	for _, line := range p.recent[:count] {
		text = append(binary.AppendUvarint(text, uint64(len(line))), line...)
	}
	if p.open() != nil {
		p.failed = true
		return dropped
	}
	p.crypt(text, p.size)
	if _, err := p.file.WriteAt(text, p.size); err != nil {
		p.failed = true // what is in the file stays there
		return dropped
	}
	p.blocks = append(p.blocks, packed{p.last - len(p.recent), count, p.size, len(text)})
	p.size += int64(len(text)+aes.BlockSize-1) / aes.BlockSize * aes.BlockSize
	p.recent, p.bytes = slices.Clone(p.recent[count:]), p.bytes-bytes
	return dropped
}

// open makes the file, with a key of its own.
func (p *past) open() error {
	if p.file != nil {
		return nil
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	var err error
	if p.key, err = aes.NewCipher(key); err != nil {
		return err
	}
	p.file, err = spool.Temporary()
	return err
}

// close removes the file, and the lines that it holds.
func (p *past) close() {
	if p.file != nil {
		spool.Remove(p.file)
	}
	p.file, p.size, p.blocks, p.read, p.lines = nil, 0, nil, packed{}, nil
}

// crypt encrypts or decrypts what stands at a place of the file, in place. No place is written twice.
func (p *past) crypt(text []byte, at int64) {
	var counter [aes.BlockSize]byte
	binary.BigEndian.PutUint64(counter[aes.BlockSize-8:], uint64(at/aes.BlockSize))
	cipher.NewCTR(p.key, counter[:]).XORKeyStream(text, text)
}

// line returns a line.
func (p *past) line(i int) string {
	if n := i - (p.last - len(p.recent)); n >= 0 {
		return p.recent[n]
	}
	at := sort.Search(len(p.blocks), func(n int) bool { return p.blocks[n].first+p.blocks[n].count > i })
	if at == len(p.blocks) || i < p.blocks[at].first {
		return ""
	}
	if b := p.blocks[at]; p.read != b {
		p.read, p.lines = b, p.unpack(b)
	}
	return p.lines[i-p.read.first]
}

// unreadable stands for a line that the file does not give back.
const unreadable = "(this line cannot be read any more)"

// unpack reads the lines of a block.
func (p *past) unpack(b packed) []string {
	text := make([]byte, b.size)
	lines := make([]string, 0, b.count)
	if n, _ := p.file.ReadAt(text, b.at); n == b.size {
		p.crypt(text, b.at)
		for len(lines) < b.count {
			size, n := binary.Uvarint(text)
			if n <= 0 || size > uint64(len(text)-n) {
				break
			}
			lines, text = append(lines, string(text[n:n+int(size)])), text[n+int(size):]
		}
	}
	for len(lines) < b.count {
		lines = append(lines, unreadable)
	}
	return lines
}
