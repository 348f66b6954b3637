// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Unwraps the events of a file with OpenAI's own client.
'use strict';
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { default: OpenAI } = require('openai');

const [file, webhookSecret] = process.argv.slice(2);
const client = new OpenAI({ apiKey: 'none', webhookSecret });

(async () => {
  const kinds = [];
  for (const { headers, body } of JSON.parse(readFileSync(file, 'utf8'))) {
    const event = await client.webhooks.unwrap(body, headers);
    assert.match(event.data.id, /^resp_/);
    assert.equal(event.object, 'event');
    kinds.push(event.type);
    await assert.rejects(client.webhooks.unwrap(body + ' ', headers));
  }
  assert.deepEqual(kinds, ['response.completed', 'agent.session.action_required']);
})().catch((e) => {
  console.error(e);
  process.exitCode = 1;
});
