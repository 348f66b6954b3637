// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func never() float64 { return 0 }

// E1
func TestBudgetBacksOff(t *testing.T) {
	failure := &Error{Class: Server}
	b := Retry{Max: 6, Rand: never}.Budget()
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		if got, ok := b.Next(failure); got != want || !ok {
			t.Errorf("retry %d: %v, %v; want %v", i, got, ok, want)
		}
	}
	if _, ok := b.Next(failure); ok {
		t.Error("a retry too many")
	}
}

// E1: the server's wish is kept, and what asks for more than the cap is not
// retried.
func TestBudgetHonoursRetryAfter(t *testing.T) {
	b := Retry{Max: 3, Rand: never}.Budget()
	for _, tt := range []struct{ asked, want time.Duration }{
		{3 * time.Second, 3 * time.Second},
		{time.Millisecond, time.Millisecond},
		{time.Minute, time.Minute},
	} {
		if got, ok := b.Next(&Error{Class: RateLimit, RetryAfter: tt.asked}); got != tt.want || !ok {
			t.Errorf("asked for %v: %v, %v", tt.asked, got, ok)
		}
	}
	b = Retry{Rand: never}.Budget()
	for _, asked := range []time.Duration{time.Minute + time.Second, 24 * time.Hour} {
		if wait, ok := b.Next(&Error{Class: RateLimit, RetryAfter: asked}); ok || b.Used() != 0 {
			t.Errorf("asked for %v: waits %v all the same", asked, wait)
		}
	}
}

// E2, E4
func TestBudgetRefuses(t *testing.T) {
	b := Retry{Max: 100}.Budget()
	for _, class := range []Class{Auth, Forbidden, NotFound, BadRequest, Quota, ContextOverflow, PreviousResponse, EncryptedContent, Policy, Idle, Protocol, TooLarge, Canceled} {
		if _, ok := b.Next(&Error{Class: class}); ok {
			t.Errorf("%s was retried", class)
		}
	}
	if _, ok := b.Next(&Error{Class: Server, Sent: true}); ok {
		t.Error("retried after output")
	}
	if _, ok := b.Next(errors.New("other")); ok {
		t.Error("retried an unknown error")
	}
	if _, ok := (Retry{Max: -1}).Budget().Next(&Error{Class: Server}); ok {
		t.Error("retried with retries off")
	}
	b = Retry{Max: 100, MaxWait: 90 * time.Second, Rand: never}.Budget()
	asked := &Error{Class: RateLimit, RetryAfter: time.Minute}
	if _, ok := b.Next(asked); !ok {
		t.Error("first wait refused")
	}
	if _, ok := b.Next(asked); ok {
		t.Error("waited longer than MaxWait in all")
	}
}

// E1: whatever servers say and chance gives, waits stay within the bounds.
func TestBudgetBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Retry{
			Max:      rapid.IntRange(-1, 8).Draw(t, "max"),
			Base:     time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "base")),
			Cap:      time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "cap")),
			MaxAfter: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "after")),
			Rand:     func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "chance") },
		}
		b := r.Budget()
		var all time.Duration
		for n := 0; ; n++ {
			asked := time.Duration(rapid.Int64Range(0, int64(maxRetryAfter)).Draw(t, "asked"))
			wait, ok := b.Next(&Error{Class: RateLimit, RetryAfter: asked})
			if !ok {
				break
			}
			all += wait
			if wait < 0 || all > DefaultMaxWait || n >= max(r.Max, DefaultRetries) {
				t.Fatalf("retry %d waits %v, %v in all", n, wait, all)
			}
		}
	})
}

// R4, E5, T12: what the loop decides to send again draws on the same budget,
// and has nothing to wait for.
func TestBudgetTake(t *testing.T) {
	b := Retry{Max: 3, Rand: never, MaxWait: time.Second}.Budget()
	if !b.Take() || b.Used() != 1 {
		t.Error("the first was refused")
	}
	if wait, ok := b.Next(&Error{Class: Server}); !ok || wait != time.Second {
		t.Errorf("the client's retry: %v, %v", wait, ok)
	}
	if !b.Take() || b.Take() || b.Used() != 3 {
		t.Errorf("used %d of 3", b.Used())
	}
	if (Retry{Max: -1}).Budget().Take() {
		t.Error("taken with retries off")
	}
	b = Retry{}.Budget()
	for b.Take() {
	}
	if b.Used() != DefaultRetries {
		t.Errorf("the zero value gives %d", b.Used())
	}
}

// E1: one budget, whoever draws on it.
func TestBudgetIsShared(t *testing.T) {
	b := Retry{Max: 10, MaxWait: time.Hour}.Budget()
	ctx := WithBudget(context.Background(), b)
	var got atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, ok := BudgetFrom(ctx).Next(&Error{Class: Server}); ok {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	if got.Load() != 10 {
		t.Errorf("%d retries out of a budget of 10", got.Load())
	}
	if BudgetFrom(context.Background()) != nil {
		t.Error("a budget out of nothing")
	}
}

func TestBudgetSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Retry{}.Budget()
		start := time.Now()
		if err := b.Sleep(t.Context(), time.Hour); err != nil || time.Since(start) != time.Hour {
			t.Errorf("slept %v, %v", time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if err := b.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("slept %v, %v", time.Since(start), err)
		}
	})
}

// A policy that says anything at all is not the zero policy.
func TestRetryIsZero(t *testing.T) {
	if !new(Retry).IsZero() {
		t.Error("the zero policy is not zero")
	}
	typ := reflect.TypeFor[Retry]()
	for i := range typ.NumField() {
		var r Retry
		switch f := reflect.ValueOf(&r).Elem().Field(i); f.Kind() {
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), nil))
		default:
			f.SetInt(1)
		}
		if r.IsZero() {
			t.Errorf("with %s it is zero", typ.Field(i).Name)
		}
	}
}
