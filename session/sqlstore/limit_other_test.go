// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !darwin && !linux

package sqlstore_test

import "errors"

func limitFiles(uint64) error { return errors.ErrUnsupported }
