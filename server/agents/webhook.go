// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// What is sent is in the note about the end of a response. A session without entries, nested
// in that of the response, says that it is still to be sent. It is made before the note, so a
// crash loses no event, and removed when the event was accepted. Of several servers over one
// store, one sends: it has the lock of a session.

const (
	// tagWebhook marks the sessions that say that something is to be sent.
	tagWebhook = "responses-webhook"
	// lookHooks is how often they are looked for.
	lookHooks = time.Second
	// firstRetry is the time to the second attempt. It doubles up to mostRetry.
	firstRetry = time.Second
	mostRetry  = time.Hour
	// giveUp is how long an event is sent again.
	giveUp = 72 * time.Hour
	// hookTime is how long the receiver may take, and hooksAtOnce how many are sent at once.
	hookTime    = 30 * time.Second
	hooksAtOnce = 4
	// maxBegin is how long a response may take from the mark to its beginning.
	maxBegin = time.Hour
)

// Webhook is the receiver of events about responses, which are signed as the API signs its
// own: by the headers webhook-id, webhook-timestamp and webhook-signature. An event may come
// more than once, with the same webhook-id.
type Webhook struct {
	// URL receives each event by POST: https, or http at a loopback address.
	URL string
	// Secret signs the events. If it begins with whsec_, the rest is the key in base64.
	Secret string
	// HTTP sends the events. It follows no redirects. Nil means a client of its own.
	HTTP *http.Client
}

// Check reports what is wrong with the fields.
func (h *Webhook) Check() error {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil:
		return errors.New("the URL of the webhook cannot be parsed") // it may have a secret
	case u.User != nil:
		return errors.New("the URL of the webhook has a password")
	case u.Hostname() == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return errors.New("the URL of the webhook must begin with https://, or name a loopback address")
	}
	_, err = h.key()
	return err
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// minSecret is the least length of a key in bytes.
const minSecret = 16

// key returns the key that signs.
func (h *Webhook) key() ([]byte, error) {
	key := []byte(h.Secret)
	if rest, ok := strings.CutPrefix(h.Secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(rest); err != nil {
			return nil, errors.New("the secret of the webhook is not base64 after whsec_")
		}
	}
	if len(key) < minSecret {
		return nil, fmt.Errorf("the secret of the webhook is shorter than %d bytes", minSecret)
	}
	return key, nil
}

// hookID returns the session that says that events about a response are to be sent. No call
// has such an id: see [session.SubsessionID].
func hookID(in string, seq int64) string { return fmt.Sprintf("%s/%d-.webhook", in, seq) }

// owe records that events about the end of a stored response are to be sent.
func (b *Backend) owe(ctx context.Context, id string) error {
	in, seq, ok := parseID(id)
	b.mu.Lock()
	_, unstored := b.unstored[id]
	b.mu.Unlock()
	if b.Webhook == nil || unstored || !ok {
		return nil
	}
	err := b.store().Create(ctx, session.Info{ID: hookID(in, seq), Parent: in, At: seq, Nested: true, Owner: b.owner(), Tags: []string{tagWebhook}})
	if errors.Is(err, session.ErrExists) {
		return nil
	}
	return err
}

// asks reports whether a response wants approvals.
func asks(output []item.Item) bool {
	return slices.ContainsFunc(output, func(it item.Item) bool { return it.Type() == item.TypeMCPApprovalRequest })
}

// news is an event for the receiver.
type news struct {
	id   string
	body []byte
}

// newsOf returns an event of a kind about a response. It is the same whenever it is sent.
func newsOf(kind, response, data string, at time.Time) news {
	sum := sha256.Sum256([]byte(response + " " + kind))
	id := "evt_" + hex.EncodeToString(sum[:16])
	return news{id, fmt.Appendf(nil, `{"id":%s,"object":"event","created_at":%d,"type":%s,"data":%s}`, item.Quote(id), at.Unix(), item.Quote(kind), data)}
}

// awaited is what has to happen to a response before anything is sent.
type awaited int

const (
	nothing awaited = iota
	itsBeginning
	itsEnd
)

// owed returns the events about a response, for the session that says that they are to be
// sent, and when it ended, unless there is something to wait for.
func (b *Backend) owed(ctx context.Context, mark session.Info) (list []news, at time.Time, wait awaited, err error) {
	in, _ := session.ParentOf(mark.ID)
	s, err := b.read(ctx, b.store(), in)
	if errors.Is(err, server.ErrNotFound) {
		return nil, at, nothing, nil // it was deleted
	}
	if err != nil {
		return nil, at, nothing, err
	}
	log, id := s.Log(), responseID(in, mark.At)
	p := partOf(log, mark.At)
	switch {
	case p.from == 0 || p.begin.ResponseID != id:
		if mark.Created.IsZero() || time.Since(mark.Created) < maxBegin {
			wait = itsBeginning
		}
		return nil, at, wait, nil
	case p.deleted:
		return nil, at, nothing, nil
	case !p.ended && p.last:
		return nil, at, itsEnd, nil
	}
	r, err := responseOf(b.inner(ctx, b.store()), log, &p)
	if err != nil {
		return nil, at, nothing, err
	}
	if at = log[p.to-1].Time; at.IsZero() && r.CreatedAt != nil {
		at = time.Unix(int64(*r.CreatedAt), 0)
	}
	named := string(item.Quote(id))
	if p.begin.Background {
		list = append(list, newsOf("response."+r.Status, id, `{"id":`+named+`}`, at))
	}
	if asks(r.Output) {
		list = append(list, newsOf("agent.session.action_required", id, `{"id":`+named+`,"required_action":{"type":"mcp_approval_request"}}`, at))
	}
	return list, at, nothing, nil
}

// SendWebhooks sends events to the Webhook until ctx is done, unless another server over the
// same store does. An event that the receiver does not accept is sent again for three days.
// What is not sent when the server ends, the next one sends. Errors of sending are logged; the
// error is about the fields of the Webhook.
func (b *Backend) SendWebhooks(ctx context.Context) error {
	if b.Webhook == nil {
		return errors.New("agents: the Webhook is not set")
	}
	if err := b.Webhook.Check(); err != nil {
		return err
	}
	o := &sender{b: b, tries: map[string]*tries{}}
	o.key, _ = b.Webhook.key() // Check has found that it is one
	if b.Webhook.HTTP != nil {
		o.client = *b.Webhook.HTTP
	} else {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: hookTime}
		defer own.CloseIdleConnections()
		o.client.Transport = own
	}
	o.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for ctx.Err() == nil {
		if err := o.hold(ctx); err != nil && ctx.Err() == nil {
			b.report(fmt.Errorf("agents: webhooks: %w", err))
			select {
			case <-ctx.Done():
			case <-time.After(lookHooks):
			}
		}
	}
	return nil
}

// sender sends events.
type sender struct {
	b      *Backend
	client http.Client
	key    []byte

	mu    sync.Mutex
	tries map[string]*tries // by the session that says that something is to be sent
}

// tries are the attempts to send the events about a response.
type tries struct {
	failed int
	seen   int64 // the last entry of the response's session before which nothing is to be sent
	sent   int   // how many of the events were accepted
	next   time.Time
}

// hold waits until no other server sends, and sends until ctx is done or the lock is lost.
func (o *sender) hold(ctx context.Context) error {
	b := o.b
	sum := sha256.Sum256([]byte(b.owner()))
	in := prefix + "webhooks-" + hex.EncodeToString(sum[:8])
	err := b.store().Create(ctx, session.Info{ID: in, Owner: b.owner()})
	if err == nil {
		err = b.store().Archive(ctx, in, true) // lists leave it out
	}
	if err != nil && !errors.Is(err, session.ErrExists) {
		return err
	}
	s, err := session.Open(ctx, b.store(), in)
	if err != nil {
		return err
	}
	unlock, err := s.WaitLock(ctx)
	if err != nil {
		return err
	}
	held, stop := s.Guard(ctx)
	defer stop()
	return errors.Join(o.rounds(held), unlock())
}

// rounds sends what is to be sent, again and again.
func (o *sender) rounds(ctx context.Context) error {
	ticks := time.NewTicker(lookHooks)
	defer ticks.Stop()
	for {
		if err := o.round(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// round sends what is due.
func (o *sender) round(ctx context.Context) error {
	var due []session.Info
	now := time.Now()
	for mark, err := range o.b.store().List(ctx, session.Query{Tags: []string{tagWebhook}, Owner: o.b.owner(), Nested: true, Archived: true}) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		o.mu.Lock()
		t := o.tries[mark.ID]
		o.mu.Unlock()
		if mark.Owner == o.b.owner() && (t == nil || t.next.Before(now)) { // a list without an owner has those of all
			due = append(due, mark)
		}
	}
	places := make(chan struct{}, hooksAtOnce)
	var all sync.WaitGroup
	for _, mark := range due {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if err := o.send(ctx, mark); err != nil && ctx.Err() == nil {
				o.b.report(fmt.Errorf("agents: webhooks: %s: %w", mark.ID, err))
			}
		})
	}
	all.Wait()
	return nil
}

// send sends the events about a response, if it has ended.
func (o *sender) send(ctx context.Context, mark session.Info) error {
	o.mu.Lock()
	t := o.tries[mark.ID]
	if t == nil {
		t = new(tries)
		o.tries[mark.ID] = t
	}
	o.mu.Unlock()
	found, seen, err := o.news(ctx, mark, t)
	if err != nil {
		return err
	}
	if !found {
		t.seen = seen
		return nil
	}
	list, ended, wait, err := o.b.owed(ctx, mark)
	switch {
	case err != nil || wait == itsBeginning:
		t.seen = 0
	case wait == itsEnd:
		t.seen = seen
	}
	if err != nil || wait != nothing {
		return err
	}
	for _, n := range list[min(t.sent, len(list)):] {
		if err = o.post(ctx, n); err != nil {
			break
		}
		t.sent++
	}
	if err != nil && ctx.Err() != nil {
		return nil
	}
	if err != nil && time.Since(ended) < giveUp {
		t.next = time.Now().Add(min(firstRetry<<min(t.failed, 20), mostRetry))
		t.failed++
		return fmt.Errorf("attempt %d: %w", t.failed, err)
	}
	if err != nil {
		err = fmt.Errorf("given up: %w", err)
	}
	o.mu.Lock()
	delete(o.tries, mark.ID)
	o.mu.Unlock()
	if gone := o.b.store().Delete(context.WithoutCancel(ctx), mark.ID); !errors.Is(gone, session.ErrNotFound) {
		err = errors.Join(err, gone)
	}
	return err
}

// news reports whether the log of a response has to be read, because it has a note that was not
// seen before. Of a response that is being made, only what is new is read. seen is the last entry
// that was looked at: it is t.seen as soon as nothing is to be sent about what is before it.
func (o *sender) news(ctx context.Context, mark session.Info, t *tries) (found bool, seen int64, err error) {
	found, seen = t.seen == 0 || t.failed > 0, t.seen
	in, _ := session.ParentOf(mark.ID)
	for e, err := range o.b.store().Load(ctx, in, t.seen) {
		if errors.Is(err, session.ErrNotFound) {
			return true, seen, nil
		}
		if err != nil {
			return false, 0, err
		}
		_, noted := noteOf(e)
		found, seen = found || noted, e.Seq
	}
	return found, seen, nil
}

// post sends an event once.
func (o *sender) post(ctx context.Context, n news) error {
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, o.key)
	fmt.Fprintf(sum, "%s.%s.%s", n.id, stamp, n.body)
	ctx, stop := context.WithTimeout(ctx, hookTime)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.b.Webhook.URL, bytes.NewReader(n.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "antiphon")
	r.Header.Set("webhook-id", n.id)
	r.Header.Set("webhook-timestamp", stamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	resp, err := o.client.Do(r)
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err // the URL may have a secret
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the receiver answered with status %d", resp.StatusCode)
	}
	return nil
}
