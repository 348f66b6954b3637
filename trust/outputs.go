// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/internal/private"
)

// Outputs remembers the files that calls of declared commands made where there was none, in a folder with a small file for
// each: a later run then does not ask about what the command itself left. Only its owner can read and write them. It may be
// used concurrently, also by several processes. Nil remembers nothing.
type Outputs struct{ folder string }

// OpenOutputs returns the outputs in a folder, which is created when it is needed.
func OpenOutputs(folder string) *Outputs { return &Outputs{folder} }

// Output is a file as a call of a command left it.
type Output struct {
	Command string `json:"command"` // its folder and its words, as the caller writes them
	Path    string `json:"path"`    // absolute
	Hash    string `json:"hash"`
}

// maxOutput limits the size of a record.
const maxOutput = 64 << 10

func (o *Outputs) file(out Output) string {
	return filepath.Join(o.folder, Hash([]byte(out.Command + "\x00" + out.Path))[:32]+".json")
}

// Has reports whether a file is as the last call of the command left it. A record that is damaged, or that others may write
// to, does not count.
func (o *Outputs) Has(out Output) bool {
	if o == nil || o.folder == "" || out.Hash == "" {
		return false
	}
	text, err := private.ReadFile(o.file(out), maxOutput)
	var was Output
	return err == nil && json.Unmarshal(text, &was) == nil && was == out
}

// Keep remembers a file as a call left it, in place of what an earlier call left.
func (o *Outputs) Keep(out Output) error {
	switch {
	case o == nil:
		return nil
	case o.folder == "":
		return errors.New("trust: the outputs have no folder: use OpenOutputs")
	case !filepath.IsAbs(out.Path):
		return errors.New("trust: the path of an output must be absolute")
	}
	text, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(o.folder, "new-*") // another process may keep the same at the same time
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), o.file(out))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
