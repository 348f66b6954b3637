// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// A terminal that is xterm.js. It reads commands, each a line: "new WIDTH HEIGHT" begins with
// an empty screen, "resize WIDTH HEIGHT", "write BASE64", and "show", which prints the number
// of lines and the lines, from the oldest one in the scrollback.
const { Terminal } = require('@xterm/headless')
const readline = require('node:readline')

let term
async function perform(line) {
  const [what, one, two] = line.split(' ')
  switch (what) {
    case 'new':
      term = new Terminal({ cols: +one, rows: +two, scrollback: 100000, allowProposedApi: true })
      break
    case 'resize':
      term.resize(+one, +two)
      break
    case 'write':
      await new Promise(done => term.write(Buffer.from(one, 'base64'), done))
      break
    case 'show': {
      const buffer = term.buffer.active, lines = []
      for (let i = 0; i < buffer.length; i++) {
        const row = buffer.getLine(i), text = row.translateToString(false)
        if (row.isWrapped) lines[lines.length - 1] += text
        else lines.push(text)
      }
      process.stdout.write(lines.length + '\n' + lines.map(l => l.trimEnd() + '\n').join(''))
    }
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) await perform(line)
})()
