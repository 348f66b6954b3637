// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// Agents are the definitions that the operator of a worker agreed to, by their hashes.
// A worker runs no other definition, not even one without powers: anyone who can write
// to the database can add a row, and every run spends the operator's money (rules K1
// and K2 in docs/rules.md).
//
// Agents are safe for concurrent use.
type Agents struct {
	// Folder holds the definitions as files, each in a folder named by its hash. It must
	// be the user's own.
	Folder string
	// Agreed keeps the agreements, also those about earlier versions of a file, so that
	// work goes on with the version that it began with. Each is a grant for one source,
	// the definition. It must be another store than that of the agreements about files.
	Agreed *trust.Store

	mu   sync.Mutex
	once []trust.Grant // agreements that nobody wanted to be remembered
}

// Agent is a file that the operator agreed to.
type Agent struct {
	Path string // of the file
	Hash string // of its definition
}

// Add packs the file of a configuration and asks its Trust, as [host.Pack] does. If the
// person agrees, the worker may run this version of the file from now on: also later, if
// the file has no powers or the agreement has a Remember, else in this process only.
func (a *Agents) Add(ctx context.Context, cfg host.Config) (Agent, error) {
	if cfg.Trust == nil {
		cfg.Trust = func(_ context.Context, c trust.Claim) (trust.Agreement, error) {
			return trust.Agreement{}, &trust.UntrustedError{Claim: c}
		}
	}
	if a.Agreed == nil {
		return Agent{}, errNotAgreed
	}
	path, err := host.ResolvePath(cfg.File)
	if err != nil {
		return Agent{}, err
	}
	cfg.File = path
	d, agreed, err := host.Pack(ctx, cfg)
	if err != nil {
		return Agent{}, err
	}
	hash, err := d.Hash()
	if err != nil {
		return Agent{}, err
	}
	claim := trust.Claim{Path: path, Sources: []trust.Source{{Path: path, Hash: hash}}, Powers: agreed.Powers}
	grant := trust.GrantOf(claim, time.Now(), agreed.Variables...)
	if len(agreed.Powers) == 0 || agreed.Remember != nil {
		return Agent{path, hash}, a.Agreed.Add(ctx, grant)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.once = append(a.once, grant)
	return Agent{path, hash}, nil
}

// Hashes returns the hashes of all definitions that the operator agreed to.
func (a *Agents) Hashes() (list []string, err error) {
	grants, err := a.grants()
	for _, g := range grants {
		if hash := g.Sources[0].Hash; !slices.Contains(list, hash) {
			list = append(list, hash)
		}
	}
	return list, err
}

var errNotAgreed = errors.New("worker: Agents have no Agreed")

// grants returns all agreements. They are read again each time, because the operator
// may have revoked some.
func (a *Agents) grants() ([]trust.Grant, error) {
	if a.Agreed == nil {
		return nil, errNotAgreed
	}
	kept, err := a.Agreed.List()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Concat(kept, a.once)
	return slices.DeleteFunc(all, func(g trust.Grant) bool { return len(g.Sources) != 1 }), err
}

// errUntrusted means that the operator agreed to no file with the definition.
var errUntrusted = errors.New("the operator of this worker has not agreed to it")

// open writes a definition into the folder, and returns the path of its file and what
// answers for the operator when the file is loaded. The powers of a file name the folder
// that it lies in, so an agreement holds for the copy with the one folder in the place of
// the other. A power that the file had not there is not agreed to. In the same way, what was
// agreed to for the worker's own workspace holds for the one in which the session works: the
// operator gave it both.
func (a *Agents) open(d agentfile.Definition, workspace, usual string) (path string, ask func(context.Context, trust.Claim) (trust.Agreement, error), err error) {
	hash, err := d.Hash()
	if err != nil {
		return "", nil, err
	}
	grants, err := a.grants()
	if err != nil {
		return "", nil, err
	}
	grants = slices.DeleteFunc(grants, func(g trust.Grant) bool { return g.Sources[0].Hash != hash })
	if len(grants) == 0 {
		return "", nil, errUntrusted
	}
	if path, err = d.Unpack(a.Folder); err != nil {
		return "", nil, err
	}
	folder := filepath.Dir(path)
	return path, func(_ context.Context, c trust.Claim) (agreed trust.Agreement, err error) {
		for _, s := range c.Sources {
			if filepath.Dir(s.Path) != folder && !strings.HasPrefix(s.Path, folder+string(filepath.Separator)) {
				// A command names a file that the definition does not include, such as one that
				// was written to the workspace since. Nobody agreed to its content. K6
				return trust.Agreement{}, nil
			}
		}
		for _, g := range grants {
			own := filepath.Dir(g.Path)
			for _, p := range c.Powers {
				there := trust.Power{Kind: p.Kind, What: strings.ReplaceAll(p.What, folder, own), Where: strings.ReplaceAll(p.Where, folder, own)}
				if before, is := strings.CutSuffix(p.Where, workspace); is && workspace != "" && (before == "" || strings.HasSuffix(before, " in ")) {
					there.Where = before + usual
				}
				if g.Powers.Has(there) {
					agreed.Powers.Add(p)
				}
			}
			agreed.Variables = append(agreed.Variables, g.Variables...)
		}
		newest := grants[len(grants)-1]
		agreed.Decided, agreed.By = session.DeciderPerson, "the operator of the worker"
		agreed.From = fmt.Sprintf("the agreement about %s of %s", newest.Path, newest.At.UTC().Format(time.DateOnly))
		return agreed, nil
	}, nil
}

// withoutFolders takes the folders of definitions from the paths in a text.
func (a *Agents) withoutFolders(text string) string {
	const slash, hash = string(filepath.Separator), 2 * len(session.Hash{}) // in digits
	parts := strings.Split(text, a.Folder+slash)
	for i, part := range parts[1:] {
		if len(part) > hash && part[hash:][:1] == slash {
			parts[i+1] = part[hash+1:]
		} else {
			parts[i+1] = a.Folder + slash + part
		}
	}
	return strings.Join(parts, "")
}

// definitionError means that the store has no usable definition with a hash.
type definitionError struct{ err error }

func (e *definitionError) Error() string { return e.err.Error() }

// maxStored is more than the stored form of any definition that can be packed.
const maxStored = 128 << 20

// definition reads a definition from a store.
func definition(ctx context.Context, from session.Blobs, hash string) (d agentfile.Definition, err error) {
	raw, err := hex.DecodeString(hash)
	if err != nil || len(raw) != len(session.Hash{}) {
		return d, &definitionError{fmt.Errorf("%q is not the hash of one", hash)}
	}
	blob, size, err := from.OpenBlob(ctx, session.Hash(raw))
	if errors.Is(err, session.ErrNoBlob) {
		return d, &definitionError{fmt.Errorf("%s is not in the store", short(hash))}
	}
	if err != nil {
		return d, err
	}
	defer blob.Close()
	if size > maxStored {
		return d, &definitionError{fmt.Errorf("%s is too large for one", short(hash))}
	}
	text, err := io.ReadAll(io.LimitReader(blob, size))
	if err != nil {
		return d, err
	}
	if d, err = agentfile.ParseDefinition(text); err != nil {
		return d, &definitionError{err}
	}
	got, err := d.Hash()
	if err == nil && got != hash {
		err = &definitionError{fmt.Errorf("%s was changed in the store", short(hash))}
	}
	return d, err
}
