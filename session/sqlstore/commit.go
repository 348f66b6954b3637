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

// committer is the only connection that writes to a SQLite database. Writes that
// arrive while it is busy are committed together, in one transaction with one wait
// for the disk. It has no goroutine: the first waiting caller commits for all, and
// then hands over.
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

// write runs do in a transaction and returns when it is durable. The transaction may
// include other writes. It may call do again after a failure; if do returns an error
// that refuses the write, do must not have changed anything.
func (c *committer) write(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	return c.wait(ctx, &pending{do: do, told: make(chan bool, 1)})
}

// alone runs do on the writing connection, outside a transaction.
func (c *committer) alone(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	return c.wait(ctx, &pending{bare: true, do: do, told: make(chan bool, 1)})
}

// wait queues a write. The first caller in the queue commits for all others; when it
// is done, it passes this duty on to the next one.
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

// maxGather bounds the time that a commit waits for other writes. It is short
// compared to a disk write.
const maxGather = 100 * time.Microsecond

// gather collects the writes to commit. If the last transaction had several writers,
// they may be about to write again, so it waits for them.
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

// commit writes the batch in one transaction, or one by one if that fails, so that no
// write fails because of another.
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

// together returns an error if nothing was written. Otherwise each refused write of
// the batch has its own error.
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

// undo rolls the transaction back and returns err.
func (c *committer) undo(ctx context.Context, err error) error {
	// After some errors SQLite has rolled back by itself, and then this fails.
	_, _ = c.tx.exec(ctx, `ROLLBACK`)
	return err
}

// refuses reports whether an error means that the write is impossible in the current
// state.
func refuses(err error) bool {
	return errors.Is(err, session.ErrConflict) || errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrExists) || errors.Is(err, session.ErrKeyUsed) ||
		errors.Is(err, session.ErrInboxFull)
}
