// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import "github.com/antiphon-go/antiphon/dialect"

// PartialError is an error after output; see [dialect.PartialError].
type PartialError = dialect.PartialError
