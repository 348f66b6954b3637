// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package agenttest is for tests of programs that use Antiphon, and for its
// own: a Responses server on loopback that answers what a test tells it to,
// right or wrong, over HTTP and WebSockets ([Server]); middleware that makes any
// other server fail in the same ways ([Wrap]); recordings of real exchanges that
// are played back; and a checker that tells what an endpoint would refuse in a
// history. For stores and crashes: steps at which a store or its database can be
// made to fail or a process to end ([StepStore], [StepConnector]), a ledger of what
// tools did ([Ledger]), a judge of logs ([CheckLog], [CheckCalls]), and a witness
// that knows what a store must hold ([Witness]).
package agenttest
