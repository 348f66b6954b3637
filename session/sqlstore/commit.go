// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// committer is the one connection that writes to a SQLite database. Writes that
// come while it is busy are committed together: one transaction, and one wait
// for the disk, for all of them. There is no goroutine of its own: who comes
// first commits for all who wait, and then hands over.
type committer struct {
	conn *sql.Conn
	tx   tx

	mu    sync.Mutex
	busy  bool
	queue []*pending
	last  int // how many writes were in the last transaction
}

// pending is a write that waits to be committed.
type pending struct {
	bare bool // do makes its own transaction, or needs to be in none
	do   func(ctx context.Context, t *tx) error
	err  error
	told chan bool // true: committed, or failed; false: commit for the others
}

// write runs do in a transaction and returns when it is durable. Other writes
// may be in the same one. do may be called again if that fails; an error of it
// that refuses tells that it changed nothing.
func (c *committer) write(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	return c.wait(ctx, &pending{do: do, told: make(chan bool, 1)})
}

// alone runs do on the connection that writes, in no transaction.
func (c *committer) alone(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	return c.wait(ctx, &pending{bare: true, do: do, told: make(chan bool, 1)})
}

func (c *committer) wait(ctx context.Context, p *pending) error {
	c.mu.Lock()
	c.queue = append(c.queue, p)
	wait := c.busy
	c.busy = true
	c.mu.Unlock()
	if wait && <-p.told {
		return p.err
	}
	batch := c.gather()
	c.commit(ctx, batch)
	for _, other := range batch {
		if other != p {
			other.told <- true
		}
	}
	c.mu.Lock()
	if len(c.queue) > 0 {
		c.queue[0].told <- false
	} else {
		c.busy = false
	}
	c.mu.Unlock()
	return p.err
}

// maxGather is how long a commit waits for others, which is short beside the
// time that a disk takes.
const maxGather = 100 * time.Microsecond

// gather takes the writes that are to be committed. Where the last transaction
// was one of several, those who were in it may be about to write again: it lets
// them.
func (c *committer) gather() []*pending {
	var began time.Time
	for {
		c.mu.Lock()
		if len(c.queue) >= c.last || !began.IsZero() && time.Since(began) > maxGather {
			batch := c.queue
			c.queue, c.last = nil, len(batch)
			c.mu.Unlock()
			return batch
		}
		c.mu.Unlock()
		if began.IsZero() {
			began = time.Now()
		}
		runtime.Gosched()
	}
}

// commit writes the batch: all in one transaction, or one by one if that fails,
// so that nobody fails for another.
func (c *committer) commit(ctx context.Context, batch []*pending) {
	batch = slices.DeleteFunc(slices.Clone(batch), func(p *pending) bool {
		if p.bare {
			p.err = p.do(ctx, &c.tx)
		}
		return p.bare
	})
	if len(batch) == 0 {
		return
	}
	if err := c.together(ctx, batch); err == nil {
		return
	} else if len(batch) == 1 {
		batch[0].err = err
		return
	}
	for _, p := range batch {
		p.err = c.together(ctx, []*pending{p})
	}
}

// together returns an error if nothing was written. Otherwise each of the batch
// has its own, if it was refused.
func (c *committer) together(ctx context.Context, batch []*pending) error {
	if _, err := c.tx.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	c.tx.ticked = false
	for _, p := range batch {
		if p.err = p.do(ctx, &c.tx); p.err != nil && (len(batch) == 1 || !refuses(p.err)) {
			return c.undo(ctx, p.err)
		}
	}
	if _, err := c.tx.exec(ctx, `COMMIT`); err != nil {
		return c.undo(ctx, err)
	}
	return nil
}

func (c *committer) undo(ctx context.Context, err error) error {
	// After some errors SQLite has rolled back by itself, and then this fails.
	_, _ = c.tx.exec(ctx, `ROLLBACK`)
	return err
}

// refuses reports an error that says that the write cannot be, as things are.
func refuses(err error) bool {
	return errors.Is(err, session.ErrConflict) || errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrExists)
}
