// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest tests stores of sessions. Whoever writes a store calls [TestStore]
// from a test; a program that only uses stores does not need this package.
//
// It also contains steps at which a store or its database can fail, or a process can end
// ([StepStore], [StepConnector]), and an auditor that knows what a store must hold after
// that ([Auditor]). Checks of the logs themselves are in package agenttest.
package storetest
