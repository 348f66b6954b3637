#!/usr/bin/env python3
# Copyright 2026 The Antiphon Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads logs of sessions, and prints what a model is sent of them.

usage: antiphon sessions export work --to jsonl | python3 read.py [--request]

It wants Python 3.9 or later, and the schema that is beside it.

It prints the view, an item a line, and an empty line behind it. With --request
it prints what the next request carries, as one line of JSON: for an endpoint
that takes items as they are, and an agent without tools. The steps have the
numbers of docs/format.md, which says what all this means. What the schema does
not know is refused.

Standard input is an exported session, or bare entries, one a line; an empty line
ends a log, and another may follow.
"""
import base64
import hashlib
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "entry.schema.json"), encoding="utf-8") as f:
    KNOWN = json.load(f)["$defs"]
CALLS = {  # the type of call that each type of output answers
    "function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call",
    "local_shell_call_output": "local_shell_call", "shell_call_output": "shell_call",
    "apply_patch_call_output": "apply_patch_call", "computer_call_output": "computer_call",
    "tool_search_output": "tool_search_call", "mcp_approval_response": "mcp_approval_request",
}
TOOL_CALLS = ("function_call", "custom_tool_call")
TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output")
CLOSED = {
    "unknown": "The run was interrupted while this call was under way. Whether it took effect is not known.",
    "cut": "The call was not started: the reply ended before the call was complete. Nothing was done.",
    "kind": "This client does not run calls of type %s.",
}
DROPPED = "[Your call of the tool computer has no screenshot, so it is left out of this conversation. Its arguments and its result, in lines that begin with >:\n\n> %s\n\n> %s\n]"
BESIDES = "[The arguments of your call of the tool tool_search, and its result besides its output above, in lines that begin with >:\n\n> %s\n\n> %s\n]"
MARKED = re.compile("\r\n|\n|\r")
COLLAPSED = "The output of this call is left out: a later call read the same again. See its output."
REFUSED = "The original output of this call is left out: the endpoint refused it. "
WITHHELD = "The output of this call was withheld by a check."
BROKE_OFF = ("[The reply above broke off here before it was complete. Unless something else is asked below,"
             " go on from exactly where it stops, and do not repeat what is there.]")
LINE_ENDS = "\n\r\v\f\x85\u2028\u2029"
SPACES = "\t \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
HEADING = re.compile("(^|[%s])((?:status|toolName|error|output):[%s]*(?=[%s]|$))" % (LINE_ENDS, SPACES, LINE_ENDS))


class Refused(Exception):
    """Something in a log that this reader does not know, or that is wrong."""


# JSON. The texts of values are kept: what is sent is what was said, byte for byte.

SPACE = re.compile(r"[ \t\r\n]*")
value_at = json.JSONDecoder().raw_decode


def parts(text):
    """Yields the texts of an object's names and values, or None and the texts of a list's elements."""
    at = SPACE.match(text, 1).end()
    while text[at] not in "]}":
        name = None
        if text[0] == "{":
            end = value_at(text, at)[1]
            name, at = text[at:end], SPACE.match(text, SPACE.match(text, end).end() + 1).end()
        end = value_at(text, at)[1]
        yield name, text[at:end]
        at = SPACE.match(text, end).end()
        if text[at] == ",":
            at = SPACE.match(text, at + 1).end()


def plain(text):
    """A text in which half a surrogate pair is U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Item:
    def __init__(self, text):
        self.text = text.strip(" \t\r\n")
        self.raw = {}  # the texts of each member's name and value; the last of a name counts
        for name, value in parts(self.text):
            key = plain(json.loads(name))
            self.raw[key] = (self.raw[key][0] if key in self.raw else name, value)
        self.type = self.get("type") or self.get("role") and "message" or self.get("id") and "item_reference"
        self.id, self.role, self.status = self.get("id"), self.get("role"), self.get("status")
        by = {"mcp_approval_request": "id", "mcp_approval_response": "approval_request_id", "local_shell_call_output": "id"}
        self.call_id = self.get(by.get(self.type, "call_id"))
        known = not self.type.startswith("tool_search") or self.get("execution") == "client"
        self.is_call = known and self.type in CALLS.values()
        self.is_output = known and self.type in CALLS
        self.spoken = self.type == "message" and self.role == "assistant"
        self.instructs = self.type == "message" and self.role in ("system", "developer")
        self.by_model = self.spoken or self.type not in ("message", "item_reference")

    def get(self, name):
        """The member of that name if it is a text, otherwise an empty one."""
        value = self.value(name)
        return plain(value) if isinstance(value, str) else ""

    def value(self, name):
        return json.loads(self.raw[name][1]) if name in self.raw else None

    def answers(self, call):
        return CALLS.get(self.type) == call.type and self.call_id == call.call_id

    def put(self, **members):
        """The item with other members; None takes one out."""
        raw = {**self.raw, **{k: (json.dumps(k), compact(v)) for k, v in members.items() if v is not None}}
        raw = {k: (self.raw.get(k, v)[0], v[1]) for k, v in raw.items() if k not in members or members[k] is not None}
        return Item("{" + ",".join(name + ":" + value for name, value in raw.values()) + "}")

    def wordless(self):
        content = self.value("content") if "content" in self.raw else ""
        if not isinstance(content, list):
            return isinstance(content, str) and not content.strip(LINE_ENDS + SPACES)
        for part in content:
            if part.get("type") not in ("input_text", "output_text") or part["text"].strip(LINE_ENDS + SPACES):
                return False
        return True

    def without_id(self):  # step 20
        if not self.id or self.type not in ("message", *TOOL_CALLS):
            return self
        if self.type != "message":
            return self.put(id=None)
        said = [self.get("content")] if isinstance(self.value("content"), str) else [shown(p) for p in self.value("content")]
        return new("message", content="\n".join(said), **some({"phase": self.get("phase")}), role=self.role)


def shown(part):
    if part.get("type") not in ("input_text", "output_text", "refusal", "reasoning_text", "summary_text", "text"):
        raise Refused("a %s in a message that loses its id: this reader does not describe it" % part.get("type"))
    return plain(part["refusal" if part["type"] == "refusal" else "text"])


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def new(kind, **members):
    return Item(compact({"type": kind, **members}))


def message(text):
    return new("message", content=[{"type": "input_text", "text": text}], role="user")


NOTE = message(BROKE_OFF)


def output_for(call, text):
    """What answers a call with a text, or None."""
    by_id = {"call_id": call.call_id}
    if not call.is_call or call.type == "computer_call":
        return None
    return new({v: k for k, v in CALLS.items()}[call.type], **{
        "function_call": some({**by_id, "output": text}),
        "custom_tool_call": some({**by_id, "output": text}),
        "mcp_approval_request": {"approval_request_id": call.call_id, "approve": False, **some({"reason": text})},
        "apply_patch_call": {**by_id, "status": "failed", "output": text},
        "local_shell_call": some({"id": call.call_id, "output": text}),
        "shell_call": {**by_id, "output": [{"stdout": "", "stderr": text, "outcome": {"type": "exit", "exit_code": 1}}]},
        "tool_search_call": {**some(by_id), "execution": "client", "tools": []},
    }[call.type])


def some(members):
    """The members that are not empty."""
    return {name: value for name, value in members.items() if value}


class Line:
    """An item that is settled, as it is sent if nobody decides otherwise."""

    def __init__(self, seq, item, first):
        self.seq, self.item, self.first = seq, item, first


class Reply:
    """What the model said in one go, and what others said before it was settled."""

    def __init__(self):
        self.nodes, self.after, self.ended, self.cut = [], [], False, False

    def followed(self, i):
        return next((not n.gone for n in self.nodes[i + 1:] if n.item.type != "reasoning"), False)

    def may_go_on(self):
        last = self.nodes[-1] if self.nodes and not self.ended and not self.after else None
        return last is not None and last.given and last.item.type == "reasoning"


class Node:
    """An item of a reply; for a call also what is known of it."""

    def __init__(self, reply, seq, item, given):
        self.reply, self.seq, self.given = reply, seq, given
        self.said, self.item = item, item  # as it was said, and as it is sent
        self.call_id, self.wire = item.call_id, ""  # the call's own id, and the one that it is sent with
        self.number, self.output, self.closed, self.gone = 0, None, False, False
        self.started = self.lost = self.repeatable = self.asked = False
        self.nested, self.starts, self.verdict = "", 0, None

    def open(self):
        return self.item.is_call and not self.output and not self.closed


class View:
    def __init__(self, used=()):
        self.lines, self.pending, self.speaking = [], [], None
        self.used, self.calls = set(used), 0
        self.withdrawn, self.refused, self.cut, self.collapsed, self.repeated = {}, {}, {}, {}, {}
        self.seq, self.unread, self.compactions = 0, 0, []

    def apply(self, seq, kind, body):
        self.seq = seq
        fold = getattr(self, "on_" + kind, None)  # the other kinds change nothing here
        if fold:
            fold(seq, body)
        while self.pending:  # step 9
            r = self.pending[0]
            if r is self.speaking or any(n.open() for n in r.nodes) or len(self.pending) == 1 and r.may_go_on():
                break
            self.settle(self.pending.pop(0))

    # What is said: steps 1 to 10.

    def on_given(self, seq, b):  # step 1
        item, last = b["item"], self.pending[-1] if self.pending else None
        if item is None or item.type == "message" and not item.id and item.wordless():
            return
        if item.is_output:
            self.answer(seq, item.call_id, item)
        elif item.by_model:
            if self.useless(item, False):
                return
            if last is None or last is self.speaking or last.ended or last.after:
                last = self.begin()
            self.say(last, seq, item, True)
        elif last:
            last.after.append((seq, item))
        else:
            self.lines.append(Line(seq, item, True))

    def on_turn_started(self, seq, b):  # step 2
        self.speaking = self.begin()

    def on_received(self, seq, b):  # step 3
        item = b["item"]
        if self.useless(item, b.get("partial")):
            return
        reply = self.speaking or self.begin()
        if item.is_output:
            call = self.unanswered(item.call_id, CALLS[item.type])
            if not call:
                return
            call.closed = True
        self.say(reply, seq, item, False)

    def on_turn_ended(self, seq, b):  # step 7
        self.end_turn(b.get("status") in ("failed", "cancelled"))

    def on_run_started(self, seq, b):  # steps 8 and 21
        for c in self.open():
            if c.started and c.nested:
                c.started = False  # it goes on
            c.lost = c.lost or c.started
        if self.speaking:
            self.end_turn(True)

    def on_answered(self, seq, b):  # step 5
        self.answer(seq, b.get("call_id", ""), b["item"])

    def on_withdrawn(self, seq, b):  # step 6
        call = self.unanswered(b.get("call_id", ""), None)
        if call:
            call.closed = call.gone = True

    def begin(self):
        self.pending.append(Reply())
        return self.pending[-1]

    def useless(self, item, partial):
        if item.type not in ("reasoning", "message") or not partial and item.status != "incomplete":
            return False
        return item.type == "reasoning" or item.wordless()

    def say(self, reply, seq, item, given):  # step 4
        node = Node(reply, seq, item, given)
        if item.is_call:
            self.calls += 1
            node.number, node.wire = self.calls, item.call_id
            if not node.wire or len(node.wire.encode()) > 64 or node.wire in self.used:
                node.wire = "call_%d" % self.calls
                while node.wire in self.used:
                    node.wire += "x"
                if item.type in TOOL_CALLS:
                    node.item = item.put(call_id=node.wire)
                else:
                    node.wire = ""
            if node.wire:
                self.used.add(node.wire)
        reply.nodes.append(node)

    def answer(self, seq, call_id, out):  # step 5
        call = self.unanswered(call_id, CALLS[out.type]) if out.type in CALLS else None
        if not call:
            return
        if call.wire and call.wire != out.call_id:
            if out.type not in TOOL_OUTPUTS:
                return
            out = out.put(call_id=call.wire)
        call.output, call.reply.ended = (seq, out), True

    def unanswered(self, call_id, kind):
        return next((c for c in self.open() if c.call_id == call_id and kind in (None, c.item.type)), None)

    def open(self):
        return [n for r in self.pending for n in r.nodes if n.open()]

    def end_turn(self, cut):  # step 7
        reply, self.speaking = self.speaking or (self.pending[-1] if self.pending else None), None
        if not cut:
            return
        if not reply:
            return self.note_break()
        reply.ended = reply.cut = True
        for n in reply.nodes:
            if n.open() and not n.started:
                n.closed = n.gone = True
                self.used.discard(n.wire)

    def note_break(self):
        if self.lines and self.lines[-1].item.spoken:
            self.lines.append(Line(self.lines[-1].seq, NOTE, False))

    def settle(self, reply):  # step 10
        start = len(self.lines)
        for i, n in enumerate(reply.nodes):
            if not n.gone and (n.item.type != "reasoning" or reply.followed(i)):
                self.lines.append(Line(n.seq, n.item, len(self.lines) == start))
        for n in reply.nodes:
            if not n.gone and n.output:
                self.lines.append(Line(*n.output, len(self.lines) == start))
        some = len(self.lines) > start
        if reply.cut and (some or reply.nodes and reply.nodes[0].given) or \
                some and self.lines[-1].item.spoken and self.lines[-1].item.status == "incomplete":
            self.note_break()
        self.lines += [Line(seq, item, True) for seq, item in reply.after]

    # What is decided: steps 11 to 17.

    def on_items_withdrawn(self, seq, b):  # step 11
        named, reason = set(b.get("entries", ())), b.get("reason", "")
        text = WITHHELD + (" " + reason if reason else "")
        for unit in self.units():
            if any(line.seq in named for line in unit):
                self.withdraw_lines(unit, named, text)
        for r in self.pending:
            self.withdraw_nodes(r, named, text)

    def units(self):
        units = []
        for line in self.lines:
            if line.first or not units:
                units.append([])
            units[-1].append(line)
        return units

    def gone(self, seq):
        return seq in self.withdrawn and self.withdrawn[seq] is None

    def withdraw_lines(self, unit, named, text):
        self.withdrawn.update((line.seq, None) for line in unit if line.seq in named and not line.item.is_output)
        for line in unit:
            if not line.item.is_output:
                continue
            call = next((c for c in unit if line.item.answers(c.item)), None)
            if call and self.gone(call.seq) or not call and line.seq in named:
                self.withdrawn[line.seq] = None
            elif line.seq in named:
                self.withdrawn[line.seq] = output_for(call.item, text)
                if not self.withdrawn[line.seq]:
                    self.withdrawn[call.seq] = None
        followed = linked = False
        for line in reversed(unit):
            if line.item.type == "reasoning":
                if not followed:
                    self.withdrawn[line.seq] = None
            elif not line.item.is_output:
                followed = not self.gone(line.seq)
        for line in unit:
            if line.item.type == "reasoning" and self.gone(line.seq):
                linked = True
            elif linked and line.item.by_model and not line.item.is_output:
                line.item = line.item.without_id()

    def withdraw_nodes(self, reply, named, text):
        linked = False
        for n in reply.nodes:
            if n.seq in named:
                n.gone = n.closed = True
                self.withdrawn[n.seq] = None
                linked = linked or n.item.type == "reasoning"
            elif linked:
                n.item = n.item.without_id()
            if n.output and (n.gone or n.output[0] in named):
                marker = None if n.gone else output_for(n.item, text)
                if not marker:
                    n.gone, self.withdrawn[n.seq] = True, None
                self.withdrawn[n.output[0]] = marker
        for i, out in enumerate(reply.nodes):  # calls that the endpoint answered itself
            for call in reply.nodes[:i] if out.item.is_output else ():
                if out.item.answers(call.item) and call.gone != out.gone:
                    call.gone = out.gone = True
                    self.withdrawn[call.seq] = self.withdrawn[out.seq] = None
        self.withdrawn.update((seq, None) for seq, _ in reply.after if seq in named)

    def on_reasoning_dropped(self, seq, b):  # step 12
        self.unread = len(self.lines)
        for c in self.compactions:
            c["items"] = [item for item in unlinked(c["items"]) if item]
        for r in self.pending:
            linked = False
            for n in r.nodes:
                if n.item.type == "reasoning" and not n.gone:
                    n.gone = linked = True
                elif linked:
                    n.item = n.item.without_id()

    def on_quarantined(self, seq, b):  # step 13
        if b.get("member"):
            self.cut.setdefault(b.get("entry", 0), []).append(b["member"])
        else:
            self.refused.setdefault(b.get("entry", 0), b.get("reason", ""))

    def on_collapsed(self, seq, b):  # step 16
        by = b.get("by", 0)
        outputs = [n.output[0] for r in self.pending for n in r.nodes if n.output]
        line = next((line for line in reversed(self.lines) if line.seq == by), None)
        if by in outputs or line and line.item.is_output:
            for s in b.get("entries", ()):
                if s < by:
                    self.collapsed.setdefault(s, by)

    def on_superseded(self, seq, b):  # step 17
        by, entries = b.get("by", 0), b.get("entries", [])
        said = self.item_of(by)
        if said and said.spoken and by not in self.repeated and by not in entries:
            for s in entries:
                item = self.item_of(s)
                if item and (item.spoken or item.type == "reasoning"):
                    self.repeated.setdefault(s, by)

    def item_of(self, seq):
        nodes = [n.item for r in self.pending for n in r.nodes if n.seq == seq and not n.gone]
        lines = [line.item for line in reversed(self.lines) if line.seq == seq and line.item.text != NOTE.text]
        return next(iter(nodes + lines), None)

    def on_compacted(self, seq, b):  # step 14
        if b.get("failure"):
            return
        c = {"seq": seq, "at": self.boundary(b.get("through", 0)), "kept": b.get("kept", [])}
        if self.replaces_any(c):
            c["items"] = self.paired(b.get("items", []), c["at"])
            self.compactions.append(c)

    def boundary(self, through):
        at = 0
        for i, line in enumerate(self.lines):
            at = i if line.first else at
            if line.seq > through:
                return at
        return len(self.lines)

    def spares(self, c, line):
        return line.item.instructs or line.seq in c["kept"] and not line.item.by_model and line.item.text != NOTE.text

    def replaces_any(self, c):
        last = self.compactions[-1] if self.compactions else {"at": 0, "items": [], "kept": []}
        if c["at"] < last["at"]:
            return False
        return bool(last["items"]) or any(
            not self.spares(c, line) and line.seq not in self.repeated and (i >= last["at"] or self.spares(last, line))
            for i, line in enumerate(self.lines[:c["at"]]))

    def paired(self, items, at):
        own = View([line.item.call_id for line in self.lines[at:] if line.item.is_call])
        own.used |= {n.wire for r in self.pending for n in r.nodes if n.item.is_call}
        for i, item in enumerate(items):
            own.on_given(i + 1, {"item": item})
        for n in own.open():
            n.closed = n.gone = True
        own.apply(0, "turn_started", {})
        self.used |= own.used
        return [line.item for line in own.lines]

    def on_restored(self, seq, b):  # step 15
        for i, c in enumerate(self.compactions):
            if c["seq"] == b.get("entry"):
                del self.compactions[i:]
                break

    # What is known of calls: step 21.

    def call(self, b):
        """The call that an entry means; one that does not count if there is none."""
        meant = (c for c in self.open() if c.call_id == b.get("call_id", "") and b.get("number", 0) in (0, c.number))
        return next(meant, None) or Node(None, 0, NOTE, False)

    def on_approval_asked(self, seq, b):
        c = self.call(b)
        c.asked, c.verdict = True, None

    def on_approval(self, seq, b):
        self.call(b).verdict = b

    def on_call_started(self, seq, b):
        c = self.call(b)
        c.starts += 1
        c.started, c.lost, c.nested = True, False, b.get("session", "")
        c.repeatable = b.get("repeatable", False) and c.starts < 3

    def on_paused(self, seq, b):
        c = self.call(b)
        c.started = False
        if "until" in b:
            c.starts = 0

    def on_noticed(self, seq, b):
        for c in self.open() if b.get("notice") in ("entry_lost", "payload_lost", "salvaged") else ():
            c.verdict = None
            if b["notice"] != "salvaged":
                c.started = c.lost = True
                c.repeatable, c.nested = False, ""

    # What is sent: steps 18 and 19.

    def items(self):  # step 19
        c = self.compactions[-1] if self.compactions else {"seq": 0, "at": 0, "kept": [], "items": []}
        instead = [self.sent(c["seq"], item) for item in c["items"]]
        lines = [self.sent(line.seq, line.item) for line in self.lines]
        lines = unlinked(lines[:self.unread]) + lines[self.unread:]
        before = [item for line, item in zip(self.lines, lines[:c["at"]]) if self.spares(c, line)]
        return [item for item in before + instead + lines[c["at"]:] if item]

    def sent(self, seq, item):  # step 18
        if seq in self.withdrawn:
            return self.withdrawn[seq]
        if seq in self.repeated:
            return None
        if seq in self.refused:
            return refused(item, self.refused[seq])
        if any(m in item.raw for m in self.cut.get(seq, ())):
            item = item.put(**dict.fromkeys(self.cut[seq]))
        if seq in self.collapsed and self.collapsed[seq] not in self.refused and item.type in TOOL_OUTPUTS:
            marker = new(item.type, **some({"call_id": item.call_id}), output=COLLAPSED)
            return marker if len(marker.text.encode()) < len(item.text.encode()) else item
        return item


def unlinked(items):
    """The items without reasoning; what was tied to it loses its id."""
    linked, out = False, []
    for item in items:
        if item and item.type == "reasoning":
            linked, item = True, None
        elif item and (item.is_output or not item.by_model):
            linked = False
        elif item and linked:
            item = item.without_id()
        out.append(item)
    return out


def refused(item, reason):
    """What is sent for an item that an endpoint refused."""
    if item.type in TOOL_OUTPUTS:
        return new(item.type, **some({"call_id": item.call_id}), output=REFUSED + reason)
    what = {"input_image": "An image", "input_file": "A file"}
    content = item.value("content")
    if item.type != "message" or not isinstance(content, list) or not any(part.get("type") in what for part in content):
        return item
    for i, part in enumerate(content):
        if part.get("type") in what:
            text = what[part["type"]] + " is left out here: the endpoint refused it. " + reason
            content[i] = {"type": "input_text", "text": text}
    return item.put(type="message", content=content)


# The next request: steps 22 to 24.

def request(view):
    view.apply(view.seq + 1, "run_started", {})
    closing = True
    while closing:
        first = {}
        for c in view.open():
            first.setdefault(c.call_id, c)
        closing = [(c, why) for c, why in ((c, hindrance(c)) for c in first.values()) if why is not None]
        for c, why in closing:
            name = {"apply_patch_call": "apply_patch", "shell_call": "shell", "local_shell_call": "local_shell",
                    "computer_call": "computer", "tool_search_call": "tool_search"}.get(c.item.type)
            text = why if c.item.type == "mcp_approval_request" else failure(name or c.item.get("name"), why)
            # with the call's own id, by which it is found; the view gives it the other
            out = output_for(c.said, text)
            view.apply(view.seq + 1, "answered" if out else "withdrawn", {"call_id": c.call_id, "item": out})
            if c.item.type in ("computer_call", "tool_search_call"):
                note = (BESIDES if out else DROPPED) % tuple(MARKED.sub(r"\g<0>> ", t) for t in (arguments(c.said), text))
                view.apply(view.seq + 1, "given", {"item": message(note)})
    view.apply(view.seq + 1, "turn_started", {})
    return view.items()


def arguments(call):
    """The arguments of a call, as a message about it repeats them."""
    raw = {name: value for name, (_, value) in call.raw.items()}
    text = raw.get("arguments", "")
    if call.type == "computer_call":
        actions = raw.get("actions") or "action" in raw and "[" + raw["action"] + "]"
        checks = ',"pending_safety_checks":' + raw["pending_safety_checks"] if call.value("pending_safety_checks") else ""
        text = '{"actions":' + actions + checks + "}" if actions else ""
    size = len(text.encode())
    return "%d bytes of arguments" % size if size > 2048 else text or "no arguments"


def hindrance(c):
    """Why a call will not run, or None."""
    asks = c.item.type == "mcp_approval_request"
    if c.given and not c.asked and not asks or c.lost and not c.repeatable:
        return CLOSED["unknown"]
    if c.said.status == "incomplete":
        return CLOSED["cut"]
    if not asks and c.item.type not in TOOL_CALLS:
        return CLOSED["kind"] % c.item.type
    if c.verdict and not c.verdict.get("allowed"):
        return c.verdict.get("reason", "")
    return None


def failure(tool, why):
    """A failure as the model reads it; see tool-output-format.md."""
    tool = tool if tool.isprintable() else json.dumps(tool)
    tool, why = HEADING.sub(r"\1 \2", tool), HEADING.sub(r"\1 \2", why)  # nothing may look like the next heading
    return "status:\nerror\n\ntoolName:\n%s\n\nerror:\n%s\n\noutput:\n" % (tool, why)


# Lines.

SUM = re.compile(rb',"sum":"([0-9a-f]{32})"}$')


def no_constant(name):
    raise Refused(name + " is not JSON")


def text_of(value):
    """A text of an entry; one that is not UTF-8 stands as its base64."""
    if isinstance(value, dict) and "base64" in value:
        return base64.b64decode(value["base64"]).decode("utf-8", "replace")
    return value


def item_of(text):
    value = json.loads(text)
    if isinstance(value, str):  # one that has line ends in it
        text = value
    elif isinstance(value, list):
        raise Refused("an item whose payloads are kept elsewhere: export the session")
    return None if value is None else Item(text)


def check(value, schema, what):
    """Refuses members that the schema does not have."""
    schema = KNOWN[schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema
    if isinstance(value, list):
        for element in value:
            check(element, schema.get("items", {}), what)
    elif isinstance(value, dict) and "properties" in schema:
        for name in value:
            if name not in schema["properties"]:
                raise Refused("unknown member %r of %s: a newer program wrote it" % (name, what))
            check(value[name], schema["properties"][name], name)
        for name in schema.get("required", ()):
            if name not in value:
                raise Refused("%s without %s" % (what, name))


def entry(text, seq):
    """The kind and the members of an entry."""
    whole = json.loads(text, parse_constant=no_constant)
    raw = [(json.loads(name), value) for name, value in parts(text.strip())]
    kind = whole.get("kind")
    if kind not in KNOWN or "kind" not in KNOWN[kind].get("properties", ()):
        raise Refused("unknown kind %r: a newer program wrote it" % kind)
    check(whole, KNOWN[kind], kind)
    if len(raw) > len(whole):
        raise Refused("a member is there twice")
    if whole["seq"] != seq:
        raise Refused("entry %s stands where entry %d should" % (whole["seq"], seq))
    body = {name: text_of(value) for name, value in whole.items()}
    for name, value in raw:
        if name == "item":
            body["item"] = item_of(value)
        elif name == "items":
            body["items"] = [item_of(element) for _, element in parts(value)]
    return kind, body


class Log:
    def __init__(self):
        self.view, self.seq, self.sum, self.summed = View(), 0, bytes(16), True

    def add(self, line):
        found = SUM.search(line)
        text = line[:found.start()] + b"}" if found else line
        self.seq += 1
        self.sum = hashlib.sha256(self.sum + self.seq.to_bytes(8, "big") + text).digest()[:16]
        self.summed = self.summed and found is not None  # behind a line without a sum they prove nothing
        if self.summed and found[1].decode() != self.sum.hex():
            raise Refused("entry %d is not what was written: its checksum differs" % self.seq)
        self.view.apply(self.seq, *entry(text.decode("utf-8"), self.seq))


class File:
    """Lines that hold one log after the other, or an exported session with those that are nested in it."""

    def __init__(self):
        self.log, self.session, self.ended = None, None, False
        self.sessions, self.entries, self.bytes = 0, 0, hashlib.sha256()

    def read(self, lines):
        """Yields each log when it is complete."""
        for number, line in enumerate(lines, 1):
            text = line.rstrip(b"\r\n")
            try:
                done = self.line(text)
            except (Refused, ValueError, LookupError, TypeError, AttributeError, RecursionError) as e:
                raise Refused("line %d: %s" % (number, e)) from e
            self.bytes.update(line)
            if done:
                yield done
        if self.session and not self.ended:
            raise Refused("it ends before its last line: it was cut short")
        if self.log:
            yield self.log

    def line(self, text):
        """Reads a line, and returns the log that it ends."""
        if self.ended:
            if text:
                raise Refused("something stands behind the last line")
        elif not text:
            return self.end(Log())
        elif text.startswith((b'{"blob":', b'{"waiting":')):
            pass
        elif text.startswith((b'{"format":', b'{"session":')):
            return self.begin(**json.loads(text))
        elif text.startswith(b'{"end":'):
            return self.count(**json.loads(text)["end"])
        else:
            self.log = self.log or Log()
            self.log.add(text)
            self.entries += 1

    def begin(self, session, format="antiphon session", version=1):
        if format != "antiphon session" or version not in (1, 2, 3, 4):
            raise Refused("version %s of the format %r: another program wrote it, or a newer one" % (version, format))
        done, self.log, self.session, self.sessions = self.end(None), Log(), session, self.sessions + 1
        return done

    def end(self, empty):
        done, self.log = self.log or empty, None
        if done and self.session and done.seq != self.session["entries"]:
            raise Refused("the session ends after %d of %d entries" % (done.seq, self.session["entries"]))
        return done

    def count(self, sessions, entries, sha256=None):
        self.ended = True
        if (sessions, entries) != (self.sessions, self.entries) or sha256 not in (None, self.bytes.hexdigest()):
            raise Refused("the lines are not those that were exported: their number or their checksum differs")
        return self.end(None)


def main():
    sys.setrecursionlimit(20000)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    if len(sys.argv) > 2 or sys.argv[1:] not in ([], ["--request"]):
        sys.exit(__doc__)
    try:
        for log in File().read(sys.stdin.buffer):
            items = request(log.view) if sys.argv[1:] else log.view.items()
            texts = [item.text.replace("\n", " ").replace("\r", " ") for item in items]
            print('{"input":[%s]}' % ",".join(texts) if sys.argv[1:] else "".join(text + "\n" for text in texts))
    except Refused as e:
        sys.exit("read.py: %s" % e)


if __name__ == "__main__":
    main()
