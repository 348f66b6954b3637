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
	"math/rand/v2"
	"os"

	"modernc.org/sqlite"
)

// tear does to a SQLite database that nobody has open what a power cut may do:
// it scribbles over the log file behind the last commit, or cuts it off there, or
// leaves something behind it. What was committed was synced, so it is left alone.
// It reports false if there is nothing to tear.
func tear(r *rand.Rand, place string) (bool, error) {
	name := place + "-wal"
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) < walHeader {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	end := committed(data)
	if end == 0 {
		return false, nil
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

// The log file of SQLite, as https://sqlite.org/fileformat2.html#walformat has
// it.
const (
	walHeader   = 32
	frameHeader = 24
)

// committed returns where the last frame of a log file ends that a commit made
// valid, 0 if the file is none.
func committed(data []byte) int {
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(data) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return 0
	}
	be := binary.BigEndian.Uint32
	page, salt := int(be(data[8:])), string(data[16:24])
	var s walSum
	s.add(order, data[:24])
	if s != (walSum{be(data[24:]), be(data[28:])}) {
		return 0
	}
	end := walHeader
	for at := walHeader; at+frameHeader+page <= len(data); at += frameHeader + page {
		frame := data[at : at+frameHeader+page]
		s.add(order, frame[:8])
		s.add(order, frame[frameHeader:])
		if string(frame[8:16]) != salt || s != (walSum{be(frame[16:]), be(frame[20:])}) {
			break
		}
		if be(frame[4:]) > 0 {
			end = at + len(frame)
		}
	}
	return end
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
