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
	"runtime"
	"strings"
)

// keptAnswers is the folder of [Options.Answers]; "" keeps nothing. A file in it
// is named by the key of its answer and begins with a line that holds the hash of
// both, so that one that was damaged or renamed counts as missing. The hash
// does not say who wrote the file: that is why nobody else may write here.
type keptAnswers string

// load returns the answer to a key, if a whole one is there.
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

// save keeps an answer.
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

// private reports a folder that other users may write to.
func (k keptAnswers) private() error {
	info, err := os.Stat(string(k))
	switch {
	case err != nil:
		return plain(err)
	case !info.IsDir():
		return errors.New("its place is not a folder")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users may write to %s; chmod 700 makes it private", string(k))
	}
	return nil
}

func answerSum(key, answer string) string {
	h := sha256.New()
	addTexts(h, "antiphon kept answer 1", key, answer)
	return hex.EncodeToString(h.Sum(nil))
}

// sayUnread remarks that answers lie beside the prompt, where older versions kept
// them. They may have come with the folder, so they are left alone.
func (s *sources) sayUnread() {
	old := filepath.Join(s.places.promptDir, ".chatmd", "cache")
	if s.toldUnread || checkFolder(old) != nil {
		return
	}
	s.toldUnread = true
	s.warnings = append(s.warnings, fmt.Errorf("%s: answers of agents that lie beside a file are not read, because anybody may have written them; the folder can be removed [warning]", old))
}
