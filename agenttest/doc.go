// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agenttest helps to test programs that use Antiphon, and Antiphon itself.
// docs/testing.md shows how. It contains models in memory whose replies a test
// specifies ([Script], [ModelFunc]) and a check of what a run did
// ([CheckTrajectory]); a Responses server on loopback that gives the answers that a test
// specifies, right or wrong, over HTTP and WebSockets ([Server]); middleware that
// makes any other server fail in the same ways ([Wrap]); recordings of real
// exchanges that can be played back; and a check for histories that an endpoint
// would refuse. For crashes it contains a ledger of tool calls ([CallLog]) and checks of
// logs ([CheckLog], [CheckCalls]). The tests of stores are in package storetest.
package agenttest
