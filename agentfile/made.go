// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/trust"
)

// A made remembers the files that the calls of a command made where there was none when the agent's
// file was read, such as the output that its words name: a person who agreed to the command agreed
// to them. It may be used concurrently.
type made struct {
	earlier *trust.Outputs // what calls of other runs left
	command string         // the folder and the words, for earlier

	mu     sync.Mutex
	hashes map[string]string // by path, as a call left them
}

// keyOf names a command for [trust.Outputs].
func keyOf(dir string, words []string) string { return dir + "\x00" + strings.Join(words, "\x00") }

// outlives reports whether it is remembered after the run that a call left a file: a report or a log in a file that an option names as
// an output. Any other file may be a program, or what a program obeys, and a run may have been talked into making it for another one.
func outlives(s trust.Source, words []string) bool {
	info, err := os.Lstat(s.Path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0 &&
		slices.Contains(reportEndings, strings.ToLower(filepath.Ext(s.Path))) && onlyOutput(s.Word, words) && !slices.Contains(codeOf(words), s.Word)
}

// onlyOutput reports whether each word of a command that holds a name is the value of an option that names an output.
func onlyOutput(name string, words []string) bool {
	found := false
	for i, word := range words {
		if i == 0 || !strings.Contains(strings.ToLower(word), strings.ToLower(name)) { // some systems have one file for both
			continue
		}
		option, value, attached := strings.Cut(word, "=")
		if !attached {
			option, value = words[i-1], word
		}
		dashed := strings.HasPrefix(option, "-")
		if option = strings.ToLower(strings.TrimLeft(option, "-")); !dashed || value != name || !slices.Contains(outputOptions, option) {
			return false
		}
		found = true
	}
	return found
}

// open returns the files of a command that a call may make: those that are not there, and those
// that are as an earlier call left them. What the command's program runs or reads as code is none
// of them: another call that runs at the same time could put it there.
func (m *made) open(words []string, scripts []trust.Source) (list []trust.Source) {
	if len(scripts) == 0 {
		return nil
	}
	code := codeOf(words)
	for _, s := range scripts {
		if s.Hash != "" || slices.Contains(code, s.Word) {
			continue
		}
		if _, err := os.Lstat(s.Path); os.IsNotExist(err) || m.left(s) {
			list = append(list, s)
		}
	}
	return list
}

// keep remembers what a call made of the files that were open to it.
func (m *made) keep(words []string, open []trust.Source) {
	for _, s := range open {
		hash, why := new(gate).hash(resolved(s.Path))
		m.mu.Lock()
		if delete(m.hashes, s.Path); why == "" {
			if m.hashes == nil {
				m.hashes = map[string]string{}
			}
			m.hashes[s.Path] = hash
		}
		m.mu.Unlock()
		if why == "" && outlives(s, words) {
			_ = m.earlier.Keep(trust.Output{Command: m.command, Path: s.Path, Hash: hash}) // else a later run asks
		}
	}
}

// left reports whether a file is as a call of the command left it.
func (m *made) left(s trust.Source) bool {
	m.mu.Lock()
	hash := m.hashes[s.Path]
	m.mu.Unlock()
	if hash == "" && m.earlier == nil {
		return false
	}
	now, why := new(gate).hash(resolved(s.Path))
	return why == "" && (now == hash || m.earlier.Has(trust.Output{Command: m.command, Path: s.Path, Hash: now}))
}

// others returns the scripts without the files that are as a call left them.
func (m *made) others(scripts []trust.Source) []trust.Source {
	return slices.DeleteFunc(slices.Clone(scripts), func(s trust.Source) bool { return s.Hash == "" && m.left(s) })
}

// codeOf returns the names that the program of a command runs or reads as code, as far as that is
// known: the program, its recipes, of an interpreter all up to the script, and of a program that
// starts another one, all.
func codeOf(words []string) []string {
	program := programOf(words[0])
	names := append([]string{words[0]}, recipes[program]...)
	switch {
	case slices.Contains(starters, program):
		names = append(names, named(words)...)
	case slices.Contains(interpreters, strings.TrimRight(program, "0123456789.")):
		end := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") })
		if end < 0 {
			end = len(words) - 2
		}
		names = append(names, named(words[:end+2])...)
	}
	return names
}

// codeIn returns the scripts that the program of a server may run. One that starts another program is known by its name
// alone: of its words, those count that are named as code is.
func codeIn(scripts []trust.Source, words []string) (list []trust.Source) {
	if len(words) == 0 {
		return nil
	}
	code, starts := codeOf(words), slices.Contains(starters, programOf(words[0]))
	for _, s := range scripts {
		if slices.Contains(code, s.Word) && (!starts || slices.Contains(codeEndings, filepath.Ext(s.Word))) {
			list = append(list, s)
		}
	}
	return list
}

var (
	outputOptions = []string{"o", "out", "output", "outfile", "out-file", "outputfile", "output-file", "output-path", "report", "report-file", "result", "result-file", "results",
		"log", "logfile", "log-file", "junit", "junit-xml", "junitxml", "junitfile", "coverprofile", "cpuprofile", "memprofile"}
	reportEndings = []string{".csv", ".htm", ".html", ".info", ".json", ".jsonl", ".lcov", ".log", ".out", ".pdf", ".png", ".prof", ".sarif", ".svg", ".tap", ".tsv", ".txt", ".xml"}

	codeEndings  = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".py", ".sh", ".rb", ".pl", ".php", ".lua", ".ps1", ".bat", ".cmd"}
	interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "node", "deno", "bun", "ts-node", "tsx", "python", "pypy", "ruby", "perl", "php", "lua", "awk", "gawk", "java", "rscript", "julia", "pwsh", "powershell"}
	starters     = []string{"env", "busybox", "nice", "nohup", "timeout", "time", "xargs", "sudo", "doas", "setsid", "stdbuf", "npx", "bunx", "npm", "pnpm", "yarn", "uv", "uvx", "poetry", "pdm", "hatch", "tox", "bundle", "docker", "docker-compose", "podman", "podman-compose"}
)
