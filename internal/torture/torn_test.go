// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"

	"modernc.org/sqlite"
)

// tear does to a SQLite database that nobody has open what a power cut may do:
// it scribbles over the log file behind the last commit, or cuts it off there, or
// leaves something behind it, and over pages of the database that were about to
// be copied from the log. What was committed was synced to the log, so that is
// left alone. It reports false if there is nothing to tear.
func tear(r *rand.Rand, place string) (bool, error) {
	name := place + "-wal"
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) < walHeader {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	end, pages := committed(data)
	if end == 0 {
		return false, nil
	}
	if r.IntN(2) == 0 {
		if err := tearPages(r, place, pages, int(binary.BigEndian.Uint32(data[8:]))); err != nil {
			return false, err
		}
	}
	junk := make([]byte, 1+r.IntN(12_000))
	for i := range junk {
		junk[i] = byte(r.Uint32())
	}
	switch behind := len(data) - end; {
	case behind == 0 || r.IntN(4) == 0:
		data = append(data, junk...)
	case r.IntN(2) == 0:
		data = data[:end+r.IntN(behind)]
	default:
		copy(data[end+r.IntN(behind):], junk)
	}
	return true, os.WriteFile(name, data, 0o644)
}

// tearPages scribbles over sectors of pages, of those that the file has, but for
// the first, which says how to read the file.
func tearPages(r *rand.Rand, place string, pages map[int]bool, size int) error {
	f, err := os.OpenFile(place, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	const sector = 512
	for _, page := range slices.Sorted(maps.Keys(pages)) {
		at := int64(page-1)*int64(size) + sector*r.Int64N(int64(size)/sector)
		if page == 1 || at+sector > info.Size() || r.IntN(3) > 0 {
			continue
		}
		junk := make([]byte, sector)
		for i := range junk {
			junk[i] = byte(r.Uint32())
		}
		if _, err := f.WriteAt(junk, at); err != nil {
			return err
		}
	}
	return nil
}

// The log file of SQLite, as https://sqlite.org/fileformat2.html#walformat has
// it.
const (
	walHeader   = 32
	frameHeader = 24
)

// committed returns where the last frame of a log file ends that a commit made
// valid, 0 if the file is none, and which pages those frames hold.
func committed(data []byte) (end int, pages map[int]bool) {
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(data) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return 0, nil
	}
	be := binary.BigEndian.Uint32
	page, salt := int(be(data[8:])), string(data[16:24])
	var s walSum
	s.add(order, data[:24])
	if s != (walSum{be(data[24:]), be(data[28:])}) {
		return 0, nil
	}
	end, pages = walHeader, map[int]bool{}
	var since []int // the last commit
	for at := walHeader; at+frameHeader+page <= len(data); at += frameHeader + page {
		frame := data[at : at+frameHeader+page]
		s.add(order, frame[:8])
		s.add(order, frame[frameHeader:])
		if string(frame[8:16]) != salt || s != (walSum{be(frame[16:]), be(frame[20:])}) {
			break
		}
		since = append(since, int(be(frame)))
		if be(frame[4:]) > 0 {
			end = at + len(frame)
			for _, page := range since {
				pages[page] = true
			}
			since = nil
		}
	}
	return end, pages
}

// walSum is the running checksum of a log file.
type walSum [2]uint32

func (s *walSum) add(order binary.ByteOrder, b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
}

// whole has SQLite look at all of a database.
func whole(ctx context.Context, place string) error {
	db := sql.OpenDB(named{"file:" + place, new(sqlite.Driver)})
	defer db.Close()
	var says string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&says); err != nil {
		return err
	}
	if says != "ok" {
		return fmt.Errorf("the database is damaged: %s", says)
	}
	return nil
}
