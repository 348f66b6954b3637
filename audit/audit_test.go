// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/audit"
	"github.com/antiphon-go/antiphon/trust"
)

// worker is the variable that makes the test binary a process that writes records.
const worker = "ANTIPHON_TEST_AUDIT"

func TestMain(m *testing.M) {
	if path := os.Getenv(worker); path != "" {
		work(path)
		return
	}
	os.Exit(m.Run())
}

// work writes records, and prints the name of each that the log says is written.
func work(path string) {
	log := audit.Open(path)
	for i := 0; ; i++ {
		name := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if err := log.Write(context.Background(), audit.Record{Kind: audit.KindStarted, CallID: name, Rule: strings.Repeat("x", i%200)}); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(name)
	}
}

func opened(t *testing.T) *audit.Log {
	t.Helper()
	return audit.Open(filepath.Join(t.TempDir(), "data", "audit.jsonl"))
}

func add(t *testing.T, log *audit.Log, calls ...string) {
	t.Helper()
	for _, id := range calls {
		if err := log.Write(t.Context(), audit.Record{Kind: audit.KindStarted, CallID: id}); err != nil {
			t.Fatal(err)
		}
	}
}

func lines(t *testing.T, log *audit.Log) (list []audit.Line) {
	t.Helper()
	for line, err := range log.All() {
		if err != nil {
			t.Fatal(err)
		}
		if line.Cut == "" {
			list = append(list, line)
		}
	}
	return list
}

func verified(t *testing.T, log *audit.Log, heads ...string) audit.Report {
	t.Helper()
	r, err := log.Verify(heads...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// K8: records are on the disk in order, chained, for the owner's eyes only.
func TestWrite(t *testing.T) {
	log := opened(t)
	if r := verified(t, log); r.Lines != 0 || r.Head != "" || len(r.Damage) != 0 {
		t.Errorf("no file: %+v", r)
	}
	log.Program, log.Hide = "antiphon 1", func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") }
	err := log.Write(t.Context(),
		audit.Record{Kind: audit.KindTrusted, File: "/a.md", Powers: trust.Powers{{Kind: trust.Starts, What: "x --token=secret", Where: "/"}}},
		audit.Record{Kind: audit.KindRemembered, Rule: strings.Repeat("é", 400), Shown: audit.Hash("?? x")})
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "c1")
	list := lines(t, log)
	if len(list) != 3 || list[0].Prev != "" || list[1].Prev != list[0].Hash || list[2].Prev != audit.Hash(string(list[1].JSON)) {
		t.Fatalf("%+v", list)
	}
	if one := list[0]; one.Program != "antiphon 1" || one.At.IsZero() || one.Powers[0].What != "x --token=[redacted]" {
		t.Errorf("%+v", one)
	}
	if n := len([]rune(list[1].Rule)); n != 301 {
		t.Errorf("a rule of %d characters", n)
	}
	if r := verified(t, log, list[0].Hash, list[2].Hash); r.Lines != 3 || r.Head != list[2].Hash || len(r.Damage) != 0 {
		t.Errorf("%+v", r)
	}
	info, err := os.Stat(log.Path())
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(log.Path() + ".lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock is left: %v", err)
	}
}

// K8: a line that is changed, removed, added or moved is found, and its place named.
func TestVerify(t *testing.T) {
	log := opened(t)
	add(t, log, "c1", "c2", "c3", "c4", "c5")
	whole, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	head := verified(t, log).Head
	each := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	each[4] = append(each[4], '\n')
	join := func(list ...[]byte) []byte { return bytes.Join(list, nil) }
	for name, tt := range map[string]struct {
		text []byte
		at   []int
	}{
		"changed":     {bytes.Replace(whole, []byte(`"c2"`), []byte(`"c9"`), 1), []int{3}},
		"removed":     {join(each[0], each[2], each[3], each[4]), []int{2}},
		"first gone":  {join(each[1:]...), []int{1}},
		"added":       {join(each[0], each[1], each[1], each[2], each[3], each[4]), []int{3}},
		"moved":       {join(each[0], each[2], each[1], each[3], each[4]), []int{2, 3, 4}},
		"not JSON":    {join(each[0], []byte("x\n"), each[1], each[2], each[3], each[4]), []int{2, 3}},
		"cut off":     {join(each[:3]...), []int{0}},
		"cut in line": {whole[:len(whole)-9], []int{0}},
		"emptied":     {nil, []int{0}},
		"last line":   {bytes.Replace(whole, []byte(`"c5"`), []byte(`"c9"`), 1), []int{0}},
	} {
		if err := os.WriteFile(log.Path(), tt.text, 0o600); err != nil {
			t.Fatal(err)
		}
		r := verified(t, log, head)
		var at []int
		for _, d := range r.Damage {
			at = append(at, d.Line)
		}
		if tt.at[0] != 0 && len(at) > 0 && at[len(at)-1] == 0 {
			at = at[:len(at)-1] // the last line hashes what is before it
		}
		if fmt.Sprint(at) != fmt.Sprint(tt.at) {
			t.Errorf("%s: %v", name, r.Damage)
		}
		if tt.at[0] == 0 && len(verified(t, log).Damage) != 0 {
			t.Errorf("%s: found without the head; correct the documents", name)
		}
		add(t, log, "next") // the log goes on, and the damage stays in sight
		if got := verified(t, log); tt.at[0] != 0 && len(got.Damage) == 0 {
			t.Errorf("%s: the damage is gone after a write", name)
		}
	}
}

// K8, J1: wherever a write was interrupted, the next one removes the rest of the line, says
// so, and the chain is whole.
func TestTornLine(t *testing.T) {
	log := opened(t)
	add(t, log, "c1", "c2")
	whole, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	torn := [][]byte{bytes.Repeat([]byte("x"), 3), append(bytes.Clone(whole), make([]byte, 5000)...)}
	for cut := first + 1; cut < len(whole); cut += 7 {
		torn = append(torn, whole[:cut])
	}
	torn = append(torn, whole[:len(whole)-1])
	for _, text := range torn {
		if err := os.WriteFile(log.Path(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		before := len(lines(t, log))
		add(t, log, "next")
		list := lines(t, log)
		rest := len(text) - bytes.LastIndexByte(text, '\n') - 1
		if r := verified(t, log); len(r.Damage) != 0 || len(list) != before+2 {
			t.Fatalf("%q: %d lines, %v", text, len(list), r.Damage)
		}
		if said := list[before]; said.Kind != audit.KindRepaired || said.What != fmt.Sprintf("removed %d bytes of a line that was not written to its end", rest) || list[before+1].CallID != "next" {
			t.Errorf("%+v", said)
		}
	}
}

// K8: a line that a crash cut is no damage, and it is not passed over: Verify says where it
// is, and that what is before it is whole.
func TestCutLine(t *testing.T) {
	log := opened(t)
	add(t, log, "c1", "c2")
	whole, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	if r := verified(t, log); r.Cut != nil {
		t.Errorf("a whole log: %v", r.Cut)
	}
	second := bytes.IndexByte(whole, '\n') + 1
	for _, cut := range []int{1, second - 1, second + 1, len(whole) - 1} {
		if err := os.WriteFile(log.Path(), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		from, number := 0, 1
		if cut > second {
			from, number = second, 2
		}
		r := verified(t, log)
		want := fmt.Sprintf("line %d: the %d bytes from byte %d on are a record that a crash cut", number, cut-from, from)
		if len(r.Damage) != 0 || r.Lines != number-1 || r.Cut == nil || !strings.HasPrefix(r.Cut.String(), want) {
			t.Errorf("cut at %d: %+v, %v; want %s", cut, r, r.Cut, want)
		}
	}
}

// K8: a write that fails leaves the file as it was, also what a crash has left in it.
func TestFailedWriteKeepsCutLine(t *testing.T) {
	log := opened(t)
	add(t, log, "c1", "c2")
	whole, err := os.ReadFile(log.Path())
	if err != nil {
		t.Fatal(err)
	}
	torn := whole[:len(whole)-20]
	if err := os.WriteFile(log.Path(), torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := log.Write(t.Context(), audit.Record{Kind: audit.KindStarted, At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a time without a form was written")
	}
	if text, err := os.ReadFile(log.Path()); err != nil || !bytes.Equal(text, torn) {
		t.Errorf("%q, %v", text, err)
	}
}

// A line that is longer than what is read at once is found too.
func TestLongLine(t *testing.T) {
	log := opened(t)
	var powers trust.Powers
	for i := range 400 {
		powers.Add(trust.Power{Kind: trust.Reads, What: fmt.Sprintf("/some/long/path/to/a/file/%d", i)})
	}
	for range 3 {
		if err := log.Write(t.Context(), audit.Record{Kind: audit.KindTrusted, Powers: powers}); err != nil {
			t.Fatal(err)
		}
	}
	if r := verified(t, log); r.Lines != 3 || len(r.Damage) != 0 {
		t.Errorf("%+v", r)
	}
}

// K8, J1, J2: many processes write at once, and are killed at any moment. Each record that
// a process was told is written is there once, and the chain is whole.
func TestKilledWriters(t *testing.T) {
	const rounds, writers = 4, 6
	log := opened(t)
	told := map[string]int{}
	var mu sync.Mutex
	for range rounds {
		var all sync.WaitGroup
		for w := range writers {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), worker+"="+log.Path())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				said := bufio.NewScanner(out)
				for n := 0; said.Scan(); n++ {
					name := said.Text()
					if strings.HasPrefix(name, "error") {
						t.Error(name)
					}
					mu.Lock()
					told[name]++
					mu.Unlock()
					if n == 3+2*w {
						_ = cmd.Process.Kill() // what it has said by then is still read
					}
				}
				_ = cmd.Wait()
			})
		}
		all.Wait()
	}
	if r := verified(t, log); len(r.Damage) != 0 || r.Lines < len(told) {
		t.Errorf("%d lines for %d records: %v", r.Lines, len(told), r.Damage)
	}
	found := map[string]int{}
	for _, line := range lines(t, log) {
		found[line.CallID]++
	}
	for name := range told {
		if found[name] != 1 {
			t.Errorf("%s is in the log %d times", name, found[name])
		}
	}
	if len(told) < rounds*writers {
		t.Errorf("only %d records", len(told))
	}
}

// What cannot be written is an error, and nothing of it is left.
func TestCannotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := audit.Open(dir).Write(t.Context(), audit.Record{}); err == nil || !strings.Contains(err.Error(), "the audit log "+dir+" cannot be written") {
		t.Error(err)
	}
	if err := new(audit.Log).Write(t.Context(), audit.Record{}); err == nil {
		t.Error("a log without a file was written")
	}
	log := opened(t)
	if err := log.Write(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(log.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Error("no record makes no file")
	}
	var many sync.WaitGroup
	for range 8 {
		many.Go(func() {
			if err := log.Write(t.Context(), audit.Record{Kind: audit.KindConnected, At: time.Unix(1, 0)}); err != nil {
				t.Error(err)
			}
		})
	}
	many.Wait()
	if r := verified(t, log); r.Lines != 8 || len(r.Damage) != 0 {
		t.Errorf("%+v", r)
	}
}
