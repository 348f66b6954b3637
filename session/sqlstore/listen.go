// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	mathrand "math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"
)

// On Postgres, processes wake each other by NOTIFY. A message has the id of a session and
// nothing else. It is a hint: its receiver looks, and looks from time to time without
// one, since not every server, pooler and driver delivers them.
//
// Deliveries and work are told by the transaction that writes them. A server commits such
// transactions one after the other, which would slow down appends. So an append is told
// after its commit, and only if a process has said lately that it watches the session. A
// process that begins to listen asks who watches something.
const (
	channelDelivery = "antiphon_delivery"
	channelWork     = "antiphon_work"
	channelAppend   = "antiphon_append"
	channelWatch    = "antiphon_watch"
)

// longestMessage is less than what a server accepts, in bytes.
const longestMessage = 7000

// saysWatching is the interval at which watchers say so, and believesWatching for how long
// they are believed.
const (
	saysWatching     = 10 * time.Second
	believesWatching = 30 * time.Second
)

// answersWithin is the longest time until a process says what it watches.
const answersWithin = 200 * time.Millisecond

// pollsLess is how much longer a store that gets messages waits between two looks.
const pollsLess = 20

// notify tells other processes of a change in the transaction, when it is committed.
func (t *tx) notify(ctx context.Context, channel, id string) error {
	if !t.postgres || len(id) > longestMessage {
		return nil
	}
	var nothing string
	return t.row(ctx, `SELECT CAST(pg_notify(?, ?) AS TEXT)`, channel, id).Scan(&nothing)
}

// wakes is a store's part in the messages. Its connection exists from the first append, or the
// first time that somebody waits for something, until the store is closed.
type wakes struct {
	s    *Store
	open func() (*sql.DB, error) // opens the connection that listens

	mu      sync.Mutex
	hears   bool                 // messages arrive
	end     context.CancelFunc   // ends the goroutines; nil if there are none
	closed  bool                 // there will be none
	watched map[string]time.Time // sessions that others watch, and when they said so last
	pruned  time.Time            // when old ones were removed from watched
	watches map[string]int       // sessions that are watched here, and by how many
	answers bool                 // a goroutine will say what is watched here
	says    map[string]string    // messages to send, by channel and id
	sends   bool                 // a goroutine sends them
	all     sync.WaitGroup
}

// start makes the store listen. It does nothing on SQLite.
func (w *wakes) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil || w.end != nil || w.closed {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	w.all.Go(func() { w.listen(ctx) })
}

// close ends the goroutines.
func (w *wakes) close() {
	w.mu.Lock()
	w.closed = true
	if w.end != nil {
		w.end()
	}
	w.mu.Unlock()
	w.all.Wait()
}

// pause returns how long to wait between two looks for deliveries.
func (w *wakes) pause() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hears {
		return pollsLess * w.s.poll
	}
	return w.s.poll
}

// hear records whether messages arrive, and makes everybody look once: what came
// meanwhile was perhaps not told.
func (w *wakes) hear(hears bool) {
	w.mu.Lock()
	changed := w.hears != hears
	if w.hears = hears; changed && hears {
		w.sayHeld(channelWatch, "")
	}
	w.mu.Unlock()
	if changed {
		w.s.arrivals.again()
		w.s.workers.tell()
		w.s.tellAll()
	}
}

// errPooled means that no message arrived: a pooler has given the connection to others.
var errPooled = errors.New("messages do not arrive: a pooler stands before the server")

// errNoMessages means that the driver has no way to wait for messages.
var errNoMessages = errors.New("the driver does not tell of messages")

// listen keeps the connection until ctx is done.
func (w *wakes) listen(ctx context.Context) {
	const least, most, pooled = 100 * time.Millisecond, 30 * time.Second, 10 * time.Minute
	for pause := least; ; pause = min(2*pause, most) {
		began := time.Now()
		err := w.listenOnce(ctx)
		w.hear(false)
		switch {
		case errors.Is(err, errNoMessages):
			return
		case errors.Is(err, errPooled):
			pause = pooled
		case time.Since(began) > most:
			pause = least
		}
		if !wait(ctx, pause) {
			return
		}
	}
}

// listenOnce connects, and passes on messages until the connection breaks.
func (w *wakes) listenOnce(ctx context.Context) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := w.tryChannel(ctx, conn); err != nil {
		return err
	}
	for _, channel := range []string{channelDelivery, channelWork, channelAppend, channelWatch} {
		if _, err := conn.ExecContext(ctx, `LISTEN `+channel); err != nil {
			return err
		}
	}
	w.hear(true)
	return receive(ctx, conn, func(channel, id string) bool {
		w.heard(ctx, channel, id)
		return true
	})
}

// tryChannel finds out whether messages arrive, by one that it sends itself. Behind a
// pooler that gives the connection to others they do not, and nothing else would tell.
func (w *wakes) tryChannel(ctx context.Context, conn *sql.Conn) error {
	channel := "antiphon_" + strings.ToLower(rand.Text())
	if _, err := conn.ExecContext(ctx, `LISTEN `+channel); err != nil {
		return err
	}
	if err := w.s.reads.notify(ctx, channel, ""); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, w.s.wait)
	defer cancel()
	err := receive(within, conn, func(got, _ string) bool { return got != channel })
	if within.Err() != nil && ctx.Err() == nil {
		return errPooled
	}
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `UNLISTEN `+channel)
	return err
}

// heard passes a message on.
func (w *wakes) heard(ctx context.Context, channel, id string) {
	switch channel {
	case channelDelivery:
		w.s.arrivals.heard(id)
		w.s.workers.tell()
	case channelWork:
		w.s.workers.tell()
	case channelAppend:
		w.s.tell(id)
	case channelWatch:
		if id == "" {
			w.answer(ctx)
		} else {
			w.watchedElsewhere(id)
		}
	}
}

// watchedElsewhere notes that another process watches a session.
func (w *wakes) watchedElsewhere(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.pruned) > believesWatching {
		maps.DeleteFunc(w.watched, func(_ string, at time.Time) bool { return now.Sub(at) > believesWatching })
		w.pruned = now
	}
	w.watched[id] = now
}

// watching notes that a session is watched here, until over is called.
func (w *wakes) watching(id string) (over func()) {
	w.start()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[id]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.watches[id]--; w.watches[id] == 0 {
			delete(w.watches, id)
		}
	}
}

// answer says what is watched here, after a while: processes that begin together, as after a
// restart of the server, ask together.
func (w *wakes) answer(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answers || len(w.watches) == 0 {
		return
	}
	w.answers = true
	w.all.Go(func() {
		wait(ctx, mathrand.N(answersWithin))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answers = false
		for id := range w.watches {
			w.sayHeld(channelWatch, id)
		}
	})
}

// appended tells those who watch a session in other processes of an append.
func (w *wakes) appended(id string) {
	w.start() // or it would not know who watches
	w.mu.Lock()
	at, watched := w.watched[id]
	w.mu.Unlock()
	if watched && time.Since(at) < believesWatching {
		w.say(channelAppend, id)
	}
}

// say sends a message soon. Messages that wait are sent together.
func (w *wakes) say(channel, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sayHeld(channel, id)
}

func (w *wakes) sayHeld(channel, id string) {
	if w.open == nil || w.closed || len(id) > longestMessage {
		return
	}
	w.says[channel+" "+id] = channel
	if !w.sends {
		w.sends = true
		w.all.Go(w.send)
	}
}

// send sends the messages. One that is lost costs time and nothing else.
func (w *wakes) send() {
	for {
		w.mu.Lock()
		says := w.says
		w.says = map[string]string{}
		w.sends = len(says) > 0 && !w.closed
		if !w.sends {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		var list [][2]string
		for key, channel := range says {
			list = append(list, [2]string{channel, strings.TrimPrefix(key, channel+" ")})
		}
		if text, err := json.Marshal(list); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), w.s.wait)
			_, _ = w.s.reads.exec(ctx, `SELECT pg_notify(m ->> 0, m ->> 1) FROM json_array_elements(CAST(? AS JSON)) AS m`, string(text))
			cancel()
		}
	}
}

// receive calls got for each message on a connection until got returns false.
func receive(ctx context.Context, conn *sql.Conn, got func(channel, payload string) bool) error {
	return conn.Raw(func(driver any) error {
		next, err := messagesOf(driver)
		for err == nil {
			var channel, payload string
			if channel, payload, err = next(ctx); err == nil && !got(channel, payload) {
				return nil
			}
		}
		return err
	})
}

// messagesOf returns the function of a driver's connection that waits for a message. The
// driver is pgx, whose connection has the methods Conn and, in what that returns,
// WaitForNotification. This package does not import a driver, so that programs which keep
// their sessions elsewhere do not contain it.
func messagesOf(driver any) (next func(context.Context) (channel, payload string, err error), err error) {
	inner := reflect.ValueOf(driver).MethodByName("Conn")
	if !inner.IsValid() || inner.Type().NumIn() != 0 || inner.Type().NumOut() != 1 {
		return nil, errNoMessages
	}
	wait := inner.Call(nil)[0].MethodByName("WaitForNotification")
	if !wait.IsValid() || wait.Type().NumIn() != 1 || wait.Type().In(0) != reflect.TypeFor[context.Context]() ||
		wait.Type().NumOut() != 2 || wait.Type().Out(1) != reflect.TypeFor[error]() {
		return nil, errNoMessages
	}
	return func(ctx context.Context) (channel, payload string, err error) {
		out := wait.Call([]reflect.Value{reflect.ValueOf(ctx)})
		if err, _ := out[1].Interface().(error); err != nil {
			return "", "", err
		}
		message := reflect.Indirect(out[0])
		if message.Kind() != reflect.Struct || !message.FieldByName("Channel").IsValid() || !message.FieldByName("Payload").IsValid() {
			return "", "", errNoMessages
		}
		return message.FieldByName("Channel").String(), message.FieldByName("Payload").String(), nil
	}, nil
}
