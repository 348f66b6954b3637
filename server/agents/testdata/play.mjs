// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// What the scripts with clients share.
export const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

// play runs steps in turn, and ends with an error if one fails.
export async function play(steps) {
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      console.log('ok', name);
    } catch (e) {
      console.error('failed:', name, e);
      process.exitCode = 1;
    }
  }
}
