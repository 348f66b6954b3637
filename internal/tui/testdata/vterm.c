// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// A terminal that is libvterm. It reads commands, each a line: "new WIDTH HEIGHT" begins with
// an empty screen, "resize WIDTH HEIGHT", "write HEX", and "show", which prints the number of
// rows and the rows, from the oldest one in the scrollback.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

static VTerm *vt;
static VTermScreen *screen;

struct line {
  int cols;
  VTermScreenCell *cells;
};
static struct line *lines; // the scrollback
static int count, room;

static int push(int cols, const VTermScreenCell *cells, void *user) {
  (void)user;
  if (count == room) lines = realloc(lines, (room = 2 * room + 64) * sizeof *lines);
  lines[count].cols = cols;
  lines[count].cells = malloc(cols * sizeof *cells);
  memcpy(lines[count++].cells, cells, cols * sizeof *cells);
  return 1;
}

static int pop(int cols, VTermScreenCell *cells, void *user) {
  (void)user;
  if (count == 0) return 0;
  struct line *last = &lines[--count];
  memset(cells, 0, cols * sizeof *cells);
  for (int i = 0; i < cols; i++) {
    cells[i].width = 1;
    if (i < last->cols) cells[i] = last->cells[i];
  }
  free(last->cells);
  return 1;
}

static const VTermScreenCallbacks callbacks = {.sb_pushline = push, .sb_popline = pop};

static void rune(uint32_t c) {
  if (c < 0x80) {
    putchar(c);
  } else if (c < 0x800) {
    putchar(0xc0 | c >> 6), putchar(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    putchar(0xe0 | c >> 12), putchar(0x80 | (c >> 6 & 0x3f)), putchar(0x80 | (c & 0x3f));
  } else {
    putchar(0xf0 | c >> 18), putchar(0x80 | (c >> 12 & 0x3f)), putchar(0x80 | (c >> 6 & 0x3f)), putchar(0x80 | (c & 0x3f));
  }
}

static void show(const VTermScreenCell *cells, int cols) {
  for (int i = 0; i < cols; i += cells[i].width > 1 ? cells[i].width : 1) {
    if (cells[i].chars[0] == 0) putchar(' ');
    for (int n = 0; n < VTERM_MAX_CHARS_PER_CELL && cells[i].chars[n] != 0; n++) rune(cells[i].chars[n]);
  }
  putchar('\n');
}

static void show_all(void) {
  int rows, cols;
  vterm_get_size(vt, &rows, &cols);
  printf("%d\n", count + rows);
  for (int i = 0; i < count; i++) show(lines[i].cells, lines[i].cols);
  VTermScreenCell *cells = calloc(cols, sizeof *cells);
  for (int row = 0; row < rows; row++) {
    for (int col = 0; col < cols; col++) vterm_screen_get_cell(screen, (VTermPos){row, col}, &cells[col]);
    show(cells, cols);
  }
  free(cells);
  fflush(stdout);
}

static void begin(int cols, int rows) {
  if (vt) vterm_free(vt);
  while (count > 0) free(lines[--count].cells);
  vt = vterm_new(rows, cols);
  vterm_set_utf8(vt, 1);
  screen = vterm_obtain_screen(vt);
  vterm_screen_set_callbacks(screen, &callbacks, NULL);
  vterm_screen_enable_altscreen(screen, 1);
  vterm_screen_reset(screen, 1);
}

int main(void) {
  char *line = NULL;
  size_t size = 0;
  ssize_t n;
  while ((n = getline(&line, &size, stdin)) > 0) {
    int cols, rows;
    if (sscanf(line, "new %d %d", &cols, &rows) == 2) begin(cols, rows);
    else if (sscanf(line, "resize %d %d", &cols, &rows) == 2) vterm_set_size(vt, rows, cols);
    else if (strncmp(line, "write ", 6) == 0) {
      char *to = line;
      unsigned byte;
      for (char *from = line + 6; sscanf(from, "%2x", &byte) == 1; from += 2) *to++ = byte;
      vterm_input_write(vt, line, to - line);
    } else if (strcmp(line, "show\n") == 0) show_all();
  }
}
