// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// This file holds the table of programs whose options are classified. It lists what
// is safe, so an option that is missing, misspelt, abbreviated or new is not safe.
// TestRememberedPairs runs the entries against the programs of this machine.

// operands says what a program does with the words that are not options.
type operands int

const (
	noOperands  operands = iota
	textWords            // it only prints or compares them
	paths                // it reads the files and directories, without following links in them
	filesOnly            // likewise, but in directories it would follow links
	oneFile              // it reads the first and would write to a second
	pattern              // the first is a pattern unless an option gives one, the rest are paths
	lineNumbers          // the first is a script of sed that prints lines, the rest are paths
	dateFormat           // each begins with a plus
	sameWords            // what the program does depends on them, so they must be those of the rule
	goPackages           // packages of the project, as in ./...
)

// style says how a program reads its options.
type style int

const (
	getopt   style = iota // -abc are three options; a value follows at once or as the next word
	oneDash               // -name, or --name, with a value behind "=" or as the next word
	findTest              // -name, with the next word as its value
)

// A verb is a program, or an operation of a program, with its safe options. A verb
// only reads and prints unless runs is set.
type verb struct {
	// options are separated by white space. A colon means that a value is required,
	// which is one of the texts behind the colon if there are any; "=" that there may
	// be one, behind "=" or directly behind a letter. "-#" is any number, as in -5.
	options  string
	operands operands
	style    style
	runs     bool // it runs programs of the project, or of the person's settings
}

// The options that operations of git share.
const (
	gitDiff = `-p -u --patch -s --no-patch -U: --unified: --raw --minimal --patience --histogram --stat= --compact-summary --numstat --shortstat
		--dirstat= --summary --name-only --name-status --no-color --color= --word-diff= --no-renames -M= -C= --find-renames= --find-copies=
		--diff-filter: -S: -G: --pickaxe-all --pickaxe-regex -R -a --text -b --ignore-space-change -w --ignore-all-space --ignore-space-at-eol
		--ignore-blank-lines --ignore-cr-at-eol --function-context -W --exit-code --quiet --no-ext-diff --no-textconv --abbrev= --full-index -z
		--no-prefix --diff-algorithm:`
	gitLog = gitDiff + ` -# --oneline --graph --decorate= --no-decorate --all --branches= --tags= --remotes= --reverse --merges --no-merges --first-parent
		--follow -n: --max-count: --skip: --since: --after: --until: --before: --author: --committer: --grep: -i --regexp-ignore-case -E -F -P
		--invert-grep --all-match --format= --pretty= --date: --date-order --topo-order --abbrev-commit --no-abbrev-commit --parents --children
		--left-right --cherry-pick --simplify-by-decoration --full-history --boundary --no-notes -L: -m --cc`
	// Other formats print what secrets hold. A namespace is part of a name.
	kubectlRead = `-l: --selector: --no-headers --show-labels -o:wide|name --output:wide|name`
)

var verbs = map[string]verb{
	"git status": {options: `-s --short -b --branch --porcelain= --long -v --verbose -u= --untracked-files= --ignored= -z --no-column --ahead-behind
		--no-ahead-behind --renames --no-renames --show-stash`, operands: paths},
	"git log":  {options: gitLog, operands: paths},
	"git show": {options: gitLog, operands: paths},
	"git diff": {options: gitDiff + ` --cached --staged --merge-base --base --ours --theirs`, operands: paths},
	"git grep": {options: `-# -i -v -w -n -l -L -c -o -h -H -E -G -P -F -e: -A: -B: -C: -a -I -q -W -p --cached --untracked --name-only
		--files-with-matches --files-without-match --count --ignore-case --word-regexp --invert-match --line-number --column --heading --break
		--show-function --function-context --all-match --and --or --not --max-depth: --threads: --full-name --no-color --color= --only-matching
		--extended-regexp --fixed-strings --perl-regexp --after-context: --before-context: --context:`, operands: pattern},
	"git blame":     {options: `-L: -l -s -e -w -M= -C= -t -f -n -p --porcelain --line-porcelain --date: --since: --show-stats --root --show-name --show-number --show-email`, operands: paths},
	"git ls-files":  {options: `-c -d -m -o -s -u -k -z -t -v --cached --deleted --modified --others --stage --unmerged --killed --exclude-standard --full-name --error-unmatch --directory --abbrev= --eol -x: --exclude:`, operands: paths},
	"git ls-tree":   {options: `-r -t -d -l -z --name-only --long --full-name --full-tree --abbrev=`, operands: paths},
	"git cat-file":  {options: `-p -t -s -e`, operands: paths},
	"git rev-parse": {options: `--short= --abbrev-ref= --show-toplevel --git-dir --is-inside-work-tree --verify -q --show-prefix --symbolic-full-name --all`, operands: paths},
	"git describe":  {options: `--tags --all --always --long --abbrev= --exact-match --match: --candidates: --contains --first-parent`, operands: paths},
	"git branch":    {options: `-a -r -v -l --all --remotes --verbose --list --show-current --no-color --color= --no-column`},
	"git tag":       {options: `-l --list -n=`},
	"git remote":    {options: `-v --verbose`},
	"git --version": {},

	"go test":    {options: `-v -race -short -failfast -json -cover -benchmem -fullpath -trimpath -run: -skip: -bench: -count: -cpu: -timeout: -parallel: -p: -benchtime: -shuffle: -list: -tags: -covermode:`, operands: goPackages, style: oneDash, runs: true},
	"go build":   {options: `-v -race -a -n -x -trimpath -p: -tags:`, operands: sameWords, style: oneDash, runs: true}, // of one command it writes the program
	"go vet":     {options: `-v -json -c: -tags:`, operands: goPackages, style: oneDash, runs: true},
	"go list":    {options: `-e -test -deps -json= -f: -tags:`, operands: goPackages, style: oneDash, runs: true},
	"go version": {style: oneDash, runs: true},

	"cargo build": {options: `-v -q --verbose --quiet -r --release --lib --bins --tests --examples --all-targets --workspace --all --all-features --no-default-features --locked --offline --frozen -j: --jobs: -F: --features:`, runs: true},
	"cargo check": {options: `-v -q --verbose --quiet -r --release --lib --bins --tests --examples --all-targets --workspace --all --all-features --no-default-features --locked --offline --frozen -j: --jobs: -F: --features:`, runs: true},
	"cargo test":  {options: `-v -q --verbose --quiet -r --release --lib --bins --tests --doc --all-targets --workspace --all --all-features --no-default-features --no-run --no-fail-fast --locked --offline --frozen -j: --jobs: -F: --features:`, operands: sameWords, runs: true}, // tests may read the words

	"npm test": {options: `-s --silent`, runs: true},
	"npm run":  {options: `-s --silent`, operands: sameWords, runs: true},
	"make":     {options: `-j= -k --keep-going -s --silent --quiet --no-print-directory`, operands: sameWords, runs: true},

	"docker ps":        {options: `-a --all -q --quiet --no-trunc -n: --last: -l --latest -s --size --filter: --format:`, runs: true},
	"docker images":    {options: `-a --all -q --quiet --no-trunc --digests --filter: --format:`, runs: true},
	"docker logs":      {options: `-t --timestamps -n: --tail: --since: --until: --details`, operands: sameWords, runs: true},
	"docker version":   {runs: true},
	"kubectl get":      {options: kubectlRead, operands: sameWords, runs: true},
	"kubectl describe": {options: `-l: --selector:`, operands: sameWords, runs: true},
	"kubectl logs":     {options: `--tail: --since: -p --previous --timestamps --all-containers --prefix`, operands: sameWords, runs: true},

	"ls": {options: `-a -A -1 -l -h -t -r -R -S -d -F -p -i -s -n -g -G -o -k -m -x -c -u -U -C --all --almost-all --human-readable --recursive --reverse
		--size --inode --directory --full-time --group-directories-first --color= --sort: --time: --time-style: --format: --no-group --numeric-uid-gid --si`, operands: paths},
	"cat":  {options: `-A -b -e -E -n -s -t -T -u -v --number --number-nonblank --show-all --show-ends --show-tabs --show-nonprinting --squeeze-blank`, operands: paths},
	"head": {options: `-# -n: -c: -q -v --lines: --bytes: --quiet --silent --verbose`, operands: paths},
	"tail": {options: `-# -n: -c: -q -v --lines: --bytes: --quiet --silent --verbose`, operands: paths},
	"wc":   {options: `-l -w -c -m -L --lines --words --bytes --chars --max-line-length`, operands: paths},
	"grep": {options: `-# -i -v -w -x -c -l -L -n -o -q -s -h -H -r -E -F -G -P -a -I -b -y -e: -m: -A: -B: -C: --ignore-case --no-ignore-case --invert-match
		--word-regexp --line-regexp --count --files-with-matches --files-without-match --line-number --only-matching --quiet --silent --no-messages
		--no-filename --with-filename --recursive --extended-regexp --fixed-strings --basic-regexp --perl-regexp --text --byte-offset --color= --colour=
		--include: --exclude: --exclude-dir: --max-count: --after-context: --before-context: --context: --regexp: --binary-files: --null`, operands: pattern},
	"rg": {options: `-i -S -s -n -N -l -c -w -x -v -o -F -U -H -I -a -e: -g: -t: -T: -A: -B: -C: -m: -M: -j: --hidden --no-ignore --glob: --iglob: --type: --type-not:
		--max-count: --context: --after-context: --before-context: --regexp: --fixed-strings --ignore-case --smart-case --case-sensitive --word-regexp
		--line-regexp --invert-match --count --count-matches --files-with-matches --files-without-match --line-number --no-line-number --heading
		--no-heading --with-filename --no-filename --only-matching --multiline --stats --json --vimgrep --sort: --color: --max-depth: --max-columns:
		--trim --no-messages`, operands: pattern},
	"find": {options: `-P -name: -iname: -path: -ipath: -wholename: -type: -maxdepth: -mindepth: -size: -mtime: -mmin: -ctime: -cmin: -atime: -amin:
		-regex: -iregex: -regextype: -perm: -user: -group: -empty -print -print0 -printf: -ls -not -o -or -a -and -prune -quit -depth -mount -xdev
		-readable -writable -executable -true -false -links: -inum:`, operands: paths, style: findTest},
	"sort": {options: `-b -d -f -g -h -i -M -n -r -s -u -V -c -C -z -m -k: -t: --reverse --unique --numeric-sort --human-numeric-sort --general-numeric-sort
		--version-sort --ignore-case --ignore-leading-blanks --dictionary-order --month-sort --stable --check= --zero-terminated --key: --field-separator: --merge`, operands: paths},
	"uniq": {options: `-c -d -D -i -u -z -f: -s: -w: --count --repeated --unique --ignore-case --skip-fields: --skip-chars: --check-chars:`, operands: oneFile},
	"diff": {options: `-u -q -s -i -w -b -B -y -a -N -c -e -n -p -d -U: -C: -W: --unified= --context= --brief --report-identical-files --side-by-side --ignore-case
		--ignore-all-space --ignore-space-change --ignore-blank-lines --text --color= --suppress-common-lines --label: --width: --strip-trailing-cr --minimal --new-file`, operands: filesOnly},
	"cmp":  {options: `-s -l -b --silent --quiet --verbose --print-bytes`, operands: filesOnly},
	"comm": {options: `-1 -2 -3 --check-order --nocheck-order --total`, operands: filesOnly},
	"cut": {options: `-d: -f: -c: -b: -s -z --delimiter: --fields: --characters: --bytes: --only-delimited --complement --output-delimiter:`,
		operands: paths},
	"tr":        {options: `-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1`, operands: textWords},
	"nl":        {options: `-b: -n: -w: -s: -v: -i:`, operands: paths},
	"tac":       {options: `-b -r -s:`, operands: paths},
	"rev":       {operands: paths},
	"paste":     {options: `-d: -s --delimiters: --serial`, operands: paths},
	"fold":      {options: `-w: -s -b`, operands: paths},
	"sed":       {options: `-n -E -r -s -u --quiet --silent --regexp-extended --separate`, operands: lineNumbers},
	"stat":      {options: `-L -c: --format: --printf: --dereference --terse`, operands: paths},
	"du":        {options: `-a -c -h -k -m -s -x -b -S -d: --max-depth: --apparent-size --summarize --human-readable --all --total --exclude: --si`, operands: paths},
	"df":        {options: `-h -k -i -T -P -m --human-readable --inodes --print-type --portability`, operands: paths},
	"file":      {options: `-b -i -k -h -N --brief --mime --mime-type --mime-encoding --no-dereference --keep-going`, operands: paths},
	"tree":      {options: `-a -d -f -L: -I: -P: -h -s -C -n -i -F --dirsfirst --noreport`, operands: paths},
	"od":        {options: `-A: -t: -N: -j: -w= -c -x -v -b -d -o -a`, operands: paths},
	"hexdump":   {options: `-C -n: -s: -v -c -x`, operands: paths},
	"cksum":     {operands: paths},
	"md5sum":    {options: `-b -t -z --tag`, operands: paths},
	"sha1sum":   {options: `-b -t -z --tag`, operands: paths},
	"sha256sum": {options: `-b -t -z --tag`, operands: paths},
	"sha512sum": {options: `-b -t -z --tag`, operands: paths},
	"readlink":  {options: `-f -e -m -n --canonicalize --no-newline`, operands: paths},
	"realpath":  {options: `-e -m -s -q -z`, operands: paths},
	"basename":  {options: `-a -s: -z`, operands: textWords},
	"dirname":   {options: `-z`, operands: textWords},
	"which":     {options: `-a`, operands: textWords},
	"echo":      {options: `-n -e -E`, operands: textWords},
	"printf":    {operands: textWords},
	"seq":       {options: `-w -s: -f:`, operands: textWords},
	"sleep":     {operands: textWords},
	"true":      {operands: textWords},
	"false":     {operands: textWords},
	"pwd":       {options: `-L -P`},
	"date":      {options: `-u -R -I= --utc --rfc-3339: --iso-8601=`, operands: dateFormat},
	"uname":     {options: `-a -s -r -m -n -v -p -o`},
	"whoami":    {},
	"id":        {options: `-u -g -n -G -r`},
	"nproc":     {options: `--all`},
}

// verbOf returns the verb that a command begins with and its name in the table.
func verbOf(words []string) (v verb, name string, rest []string, ok bool) {
	if len(words) == 0 {
		return v, "", nil, false
	}
	if len(words) > 1 && words[0] == "git" && words[1] == "--no-pager" {
		words = slices.Delete(slices.Clone(words), 1, 2)
	}
	if len(words) > 1 {
		name = words[0] + " " + words[1]
		if v, ok = verbs[name]; ok {
			return v, name, words[2:], true
		}
	}
	v, ok = verbs[words[0]]
	return v, words[0], words[1:], ok
}

// numberOption matches -5, which some programs take for a number of lines, and
// negativeValue what find compares with, as in -mtime -1 and -size -10k.
var (
	numberOption  = lazyregexp.New(`^-[0-9]+$`)
	negativeValue = lazyregexp.New(`^-[0-9]+[a-zA-Z]?$`)
)

// unsafeFormat matches the formats with which git starts the program that checks
// signatures.
var unsafeFormat = lazyregexp.New(`%[-+ ]?G`)

// read separates the words of a command into options and the others. It reports
// false for an option that is not listed, and for words that another version of the
// program may take for an option.
func (v verb) read(words []string) (others []string, patterned, ok bool) {
	kinds := map[string]string{} // what may follow the option: "", ":values" or "="
	for _, option := range strings.Fields(v.options) {
		name := strings.TrimRight(option, "=")
		if at := strings.IndexByte(option, ':'); at > 0 {
			name = option[:at]
		}
		kinds[name] = option[len(name):]
	}
	_, numbers := kinds["-#"]
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "--" && v.style != findTest:
			rest := words[i+1:]
			return append(others, rest...), patterned, !slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, "-") })
		case len(word) < 2 || word[0] != '-':
			others = append(others, word)
			continue
		case numbers && numberOption.MatchString(word):
			continue
		}
		name, value, given, known := v.option(word, kinds)
		if !known {
			return nil, false, false
		}
		patterned = patterned || name == "-e" || name == "--regexp"
		if allowed, required := strings.CutPrefix(kinds[name], ":"); required {
			if !given {
				if i++; i == len(words) || strings.HasPrefix(words[i], "-") && !negativeValue.MatchString(words[i]) {
					return nil, false, false
				}
				value = words[i]
			}
			if allowed != "" && !slices.Contains(strings.Split(allowed, "|"), value) {
				return nil, false, false
			}
		}
		if unsafeFormat.MatchString(value) && (name == "--format" || name == "--pretty") {
			return nil, false, false
		}
	}
	return others, patterned, true
}

// option finds the listed option that a word is, the last one if the word holds
// several letters, and the value in the word.
func (v verb) option(word string, kinds map[string]string) (name, value string, given, known bool) {
	if v.style == oneDash {
		word = "-" + strings.TrimLeft(word, "-")
	}
	name, value, given = strings.Cut(word, "=")
	kind, known := kinds[name]
	if strings.HasPrefix(word, "--") || v.style != getopt {
		return name, value, given, known && (!given || kind != "" && v.style != findTest)
	}
	for i, letter := range word[1:] {
		name = "-" + string(letter)
		if kind, known = kinds[name]; !known {
			return "", "", false, false
		}
		if rest := word[1:][i+len(string(letter)):]; kind != "" {
			return name, rest, rest != "", true
		}
	}
	return name, "", false, true
}

// printsLines matches scripts of sed that print lines by their numbers.
var printsLines = lazyregexp.New(`^([0-9]+|\$)(,([0-9]+|\$|\+[0-9]+))?p$`)

// safe reports whether all words behind the verb are known to be harmless. The words
// fixed are those of the rule, for verbs that depend on them. The function inside
// reports whether a path is in a root; without it all paths are.
func (v verb) safe(words, fixed []string, inside func(path string, dirs bool) bool) bool {
	others, patterned, ok := v.read(words)
	if !ok {
		return false
	}
	every := func(list []string, fits func(string) bool) bool {
		return !slices.ContainsFunc(list, func(w string) bool { return !fits(w) })
	}
	path := func(dirs bool) func(string) bool {
		return func(p string) bool { return inside == nil || inside(p, dirs) }
	}
	switch v.operands {
	case textWords:
		return true
	case paths:
		if v.style == findTest {
			others = slices.DeleteFunc(others, func(w string) bool { return slices.Contains([]string{"(", ")", "!", ","}, w) })
		}
		return every(others, path(true))
	case filesOnly:
		return every(others, path(false))
	case oneFile:
		return len(others) < 2 && every(others, path(true))
	case pattern:
		if !patterned && len(others) > 0 {
			others = others[1:]
		}
		return every(others, path(true))
	case lineNumbers:
		return len(others) > 0 && printsLines.MatchString(others[0]) && every(others[1:], path(true))
	case dateFormat:
		return every(others, func(w string) bool { return strings.HasPrefix(w, "+") })
	case sameWords:
		return slices.Equal(others, fixed)
	case goPackages:
		return every(others, func(w string) bool { return (w == "." || strings.HasPrefix(w, "./")) && path(true)(w) })
	}
	return len(others) == 0
}
