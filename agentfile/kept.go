// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/internal/private"
)

// keptAnswers is the folder of [Options.Answers]; "" stores nothing. A file is named
// by the key of its answer, and its first line is a hash of both, so that a damaged
// or renamed file counts as missing. The hash does not prove who wrote the file, so
// no other user may have write access to the folder.
type keptAnswers string

// load returns the stored answer for a key, if it is complete.
func (k keptAnswers) load(key string) (answer string, ok bool) {
	if k == "" || k.private() != nil {
		return "", false
	}
	root, err := os.OpenRoot(string(k))
	if err != nil {
		return "", false
	}
	defer root.Close()
	if info, err := root.Lstat(key); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	f, err := root.Open(key)
	if err != nil {
		return "", false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return "", false
	}
	sum, answer, _ := strings.Cut(string(text), "\n")
	return answer, sum == answerSum(key, answer)
}

// save stores an answer.
func (k keptAnswers) save(key, answer string) error {
	if k == "" {
		return nil
	}
	if err := makeFolders(string(k)); err != nil {
		return plain(err)
	}
	if err := k.private(); err != nil {
		return err
	}
	return replaceFile(filepath.Join(string(k), key), []byte(answerSum(key, answer)+"\n"+answer))
}

// private returns an error if other users can write to the folder.
func (k keptAnswers) private() error {
	info, err := os.Stat(string(k))
	switch {
	case err != nil:
		return plain(err)
	case !info.IsDir():
		return errors.New("its path is not a folder")
	}
	if err := private.Check(info); err != nil {
		return fmt.Errorf("%s: %w", string(k), err)
	}
	return nil
}

func answerSum(key, answer string) string {
	h := sha256.New()
	addTexts(h, "antiphon kept answer 1", key, answer)
	return hex.EncodeToString(h.Sum(nil))
}

// sayUnread warns about answers beside the prompt, where older versions stored them.
// They are not used, because they may have come with the folder.
func (s *sources) sayUnread() {
	old := filepath.Join(s.places.promptDir, ".chatmd", "cache")
	if s.toldUnread || checkFolder(old) != nil {
		return
	}
	s.toldUnread = true
	s.warnings = append(s.warnings, fmt.Errorf("%s: agents' answers beside a file are not used, because anybody may have written them; you can remove the folder [warning]", old))
}
