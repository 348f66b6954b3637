// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/session/store"
)

// lookAtStore reports the durability of a store's commits (J10).
func (c *doctorCommand) lookAtStore(ctx context.Context, std stdio, env environment) (err error) {
	flag := storeFlag{Store: c.Store, StoreKey: c.StoreKey}
	if c.Store == "default" {
		flag.Store = ""
	}
	k, err := flag.open(ctx, env, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	asks, err := as[store.Durable](k, "say what it does with what it has committed")
	if err != nil {
		return err
	}
	d, err := asks.Durability(ctx)
	if err != nil {
		return err
	}
	list := []finding{{"store", told, k.Place()}, {"format", told, fmt.Sprint(d.Format)}, {"encrypted", told, flag.encryption(env, k)}}
	weak := 0
	for _, s := range d.Settings {
		f := finding{s.Name, told, s.Value}
		if s.Note != "" {
			f.Note += " (" + s.Note + ")"
		}
		if s.Weak != "" {
			f.Result, f.Note = broken, s.Value+": "+s.Weak
			weak++
		}
		list = append(list, f)
	}
	report := newDoctorReport(std, env, c.JSON)
	report.section("Store", list)
	if err := report.end(nil, true); err != nil || weak == 0 {
		return err
	}
	return fmt.Errorf("what is committed to this store may be lost: %s", show.Plural(weak, "setting"))
}

// encryption reports whether a store is encrypted, and whether its key is available.
func (f *storeFlag) encryption(env environment, k keeper) string {
	switch source, _ := f.source(env); {
	case !store.Encrypted(k):
		return "no"
	case f.unread(env, k):
		return "yes; without its key the sessions cannot be read: --store-key WHERE, or $ANTIPHON_STORE_KEY"
	default:
		return fmt.Sprintf("yes, and the key (%s) opens it", source)
	}
}
