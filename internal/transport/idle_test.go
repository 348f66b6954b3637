// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The timer fires a limit after the waiting began, however often it has looked
// before, and never while nothing is waited for.
func TestIdleTimer(t *testing.T) {
	const limit, second = 10 * time.Second, time.Second
	for name, tt := range map[string]struct {
		limit time.Duration
		do    func(*idleTimer)
		after time.Duration // 0: it goes on
		cause error
	}{
		"nothing is waited for":    {limit, func(*idleTimer) {}, 0, nil},
		"silence":                  {limit, func(i *idleTimer) { i.start() }, limit, errIdle},
		"silence after a while":    {limit, func(i *idleTimer) { time.Sleep(7 * second); i.start() }, 17 * second, errIdle},
		"silence after a long":     {limit, func(i *idleTimer) { time.Sleep(25 * second); i.start() }, 35 * second, errIdle},
		"something came":           {limit, func(i *idleTimer) { i.start(); time.Sleep(9 * second); i.stop(); i.start() }, 19 * second, errIdle},
		"a slow consumer":          {limit, func(i *idleTimer) { i.start(); i.stop() }, 0, nil},
		"no limit":                 {0, func(i *idleTimer) { i.start() }, 0, nil},
		"an end":                   {limit, func(i *idleTimer) { i.end(second) }, second, errClosed},
		"an end without a limit":   {0, func(i *idleTimer) { i.start(); i.end(second) }, second, errClosed},
		"the first end counts":     {limit, func(i *idleTimer) { i.end(second); i.end(5 * second) }, second, errClosed},
		"silence before the end":   {limit, func(i *idleTimer) { i.start(); i.end(20 * second) }, limit, errIdle},
		"closed":                   {limit, func(i *idleTimer) { i.start(); i.close() }, 0, nil},
		"an end after it closed":   {limit, func(i *idleTimer) { i.close(); i.end(second) }, 0, nil},
		"closed with an end":       {0, func(i *idleTimer) { i.end(second); i.close() }, 0, nil},
		"an end while it waits":    {limit, func(i *idleTimer) { time.Sleep(25 * second); i.start(); i.end(second) }, 26 * second, errClosed},
		"only keepalives":          {limit, func(i *idleTimer) { i.heard(); signs(i, time.Hour, 0) }, 120 * second, errSigns},
		"signs and some events":    {limit, func(i *idleTimer) { i.heard(); signs(i, 20*time.Minute, 100*second) }, 0, nil},
		"events, then signs":       {limit, func(i *idleTimer) { i.heard(); signs(i, 200*second, 5*second); signs(i, time.Hour, 0) }, 316 * second, errSigns}, // the last event comes after 196,
		"signs that nobody counts": {limit, func(i *idleTimer) { signs(i, time.Hour, 0) }, 0, nil},
		"a consumer who is slow":   {limit, func(i *idleTimer) { i.heard(); i.stop(); time.Sleep(time.Hour) }, 0, nil},
		"a slow upload": {limit, func(i *idleTimer) {
			i.start()
			p := &pace{timer: i}
			for range 100 {
				p.reading(true)
				time.Sleep(9 * second)
				p.reading(false)
			}
		}, 910 * second, errIdle},
		"an upload that ended": {limit, func(i *idleTimer) {
			p := &pace{timer: i}
			p.reading(true)
			p.end()
			i.stop()
			p.reading(false)
		}, 0, nil},
		"an end that is very far": {limit, func(i *idleTimer) { i.end(time.Hour); i.start(); i.stop() }, time.Hour, errClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				var idle idleTimer
				idle.open(tt.limit, cancel)
				defer idle.close()
				var ended time.Time
				context.AfterFunc(ctx, func() { ended = time.Now() })
				tt.do(&idle)
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Hour):
				}
				if context.Cause(ctx) != tt.cause {
					t.Fatalf("%v, want %v", context.Cause(ctx), tt.cause)
				}
				synctest.Wait()
				took := ended.Sub(began)
				if context.Cause(ctx) == errSigns { // which is as exact as the timer looks
					took = min(took, max(took-2*limit, tt.after))
				}
				if tt.cause != nil && took != tt.after {
					t.Errorf("after %v, want %v", took, tt.after)
				}
			})
		})
	}
}

// signs reads for a while: something comes every second, and an event every so
// often, or never. It leaves nothing waited for.
func signs(i *idleTimer, while, event time.Duration) {
	i.start()
	for at := time.Duration(0); at < while; at += time.Second {
		time.Sleep(time.Second)
		i.stop()
		if event > 0 && at%event == 0 {
			i.heard()
		}
		i.start()
	}
	i.stop()
}
