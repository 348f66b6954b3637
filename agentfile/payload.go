// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
)

// MaxInline is the maximum size in bytes of a payload of a call or an output inside
// the transcript. Larger payloads are written to files, and so are all payloads if
// the config has show_tool_call="false".
const MaxInline = 32 << 10

// payloads are the files beside a transcript, .chatmd/NAME/1.json and so on. Their
// names never contain text of a model or a tool, and no file is ever overwritten.
type payloads struct {
	out    string // the transcript
	writer chatmd.Writer
	next   int      // the number of the next file; 0 before the folder was read
	made   []string // files that the transcript does not name yet
}

func payloadsOf(f *File, out string) *payloads {
	p := &payloads{out: out, writer: chatmd.Writer{Inline: MaxInline, Exact: true}}
	if c := f.doc().Config; c != nil && c.Value("show_tool_call") == "false" {
		p.writer.Inline = 0
	}
	p.writer.Put = p.put
	return p
}

func (p *payloads) append(dst []byte, it item.Item) ([]byte, error) { return p.writer.Append(dst, it) }

// folder returns the folder of the files, and its name in the transcript.
func (p *payloads) folder() (dir, name string) {
	name = ".chatmd/" + filepath.Base(p.out)
	return filepath.Join(filepath.Dir(p.out), filepath.FromSlash(name)), name
}

// put writes the next file.
func (p *payloads) put(payload string) (src string, err error) {
	dir, name := p.folder()
	// A program that a tool ran may have put a link in the place of a folder.
	root, err := os.OpenRoot(filepath.Dir(p.out))
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.FromSlash(name), 0o700); err != nil {
		return "", err
	}
	if err := makeFolders(dir); err != nil {
		return "", err
	}
	if p.next == 0 {
		if p.next, err = firstFree(dir); err != nil {
			return "", err
		}
		syncFolder(filepath.Dir(dir)) // taking the lock may have created the folders
		syncFolder(filepath.Dir(filepath.Dir(dir)))
	}
	for ; ; p.next++ {
		file := strconv.Itoa(p.next) + ".json"
		path := filepath.Join(dir, file)
		f, err := root.OpenFile(filepath.Join(filepath.FromSlash(name), file), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // another program's file
		}
		if err != nil {
			return "", err
		}
		p.made = append(p.made, path)
		_, err = f.WriteString(payload)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return "", fmt.Errorf("a payload beside the transcript: %w", plain(err))
		}
		syncFolder(dir)
		p.next++
		return name + "/" + file, nil
	}
}

// firstFree returns the first number after those of all existing files.
func firstFree(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	last := 0
	for _, e := range entries {
		if number, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			if n, err := strconv.Atoi(number); err == nil {
				last = max(last, n)
			}
		}
	}
	return last + 1, err
}

// keep is called when the transcript names the new files.
func (p *payloads) keep() { p.made = nil }

// discard removes the files that the transcript does not name.
func (p *payloads) discard() {
	for _, path := range p.made {
		_ = os.Remove(path)
	}
	p.made = nil
}
