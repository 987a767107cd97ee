# Copyright (c) The Strata Authors
# SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
"""Finds what of a C++ source is not counted: code that no test can run, and branches that are not
in the source. docs/coverage.md says what these are, and why.

The source is not parsed: comments, literals and preprocessor directives are blanked, and
parentheses and braces are paired. That is enough for code that clang-format has formatted."""
import bisect
import dataclasses
import re

# Statements for tests alone, whose lines are not counted.
TEST_STATEMENT = re.compile(r'\b(?:assert|TEST_(?:IDX_)?SYNC_POINT\w*|TEST_KILL_RANDOM\w*)\s*\(')
# Macros of RocksDB's that have an `if` of their own.
BRANCHING_MACRO = re.compile(r'\b(?:PERF_\w+|IGNORE_STATUS_IF_ERROR)\s*\(')
# The compiler asks whether a local variable of this kind has its value yet.
STATIC_LOCAL = re.compile(r'^[ \t]+static\b(?!_)', re.M)
UNREACHABLE = re.compile(r'\bassert\s*\(\s*false\b')
SWITCH = re.compile(r'\bswitch\s*\(')
LABEL = re.compile(r'\b(?:case\b[^;{}]*?[^:]|default\s*):(?!:)')
DEFAULT = re.compile(r'\bdefault\s*:')
DEFAULTED = re.compile(r'=\s*default\s*;')
RAW_STRING = re.compile(r'R"([^()\\\s]{0,16})\(')
# A number that goes on after a quote.
NUMBER = re.compile(r"\b\d[\w']*$")
# What may stand between the parentheses of a head and the brace.
QUALIFIERS = re.compile(r'(?:\b(?:const|override|final|noexcept|mutable)\b|->[^;{}()]*|\s)*$')


@dataclasses.dataclass
class Exclusions:
    lines: set = dataclasses.field(default_factory=set)     # not counted, nor their branches
    branches: set = dataclasses.field(default_factory=set)  # lines whose branches are not counted
    # (first, last): on one of these lines is one branch that cannot be taken.
    dead_branches: list = dataclasses.field(default_factory=list)
    # The lines on which the bodies of functions begin that must not be called.
    dead_bodies: set = dataclasses.field(default_factory=set)
    defaulted: set = dataclasses.field(default_factory=set)  # lines with "= default;"


def blank(text):
    """The text with spaces in place of comments, literals and preprocessor directives."""
    out, i, n = list(text), 0, len(text)

    def erase(first, last):
        for k in range(first, min(last, n)):
            if out[k] != '\n':
                out[k] = ' '

    at_line_start = True
    while i < n:
        c, end = text[i], i + 1
        raw = RAW_STRING.match(text, i) if c == 'R' else None
        if text.startswith('//', i):
            end = text.find('\n', i)
        elif text.startswith('/*', i):
            end = text.find('*/', i + 2) + 2
            end = n if end == 1 else end
        elif raw:
            end = text.find(f'){raw.group(1)}"', raw.end())
            end = n if end < 0 else end + len(raw.group(1)) + 2
        elif c == '#' and at_line_start:
            end = re.compile(r'(?:\\\n|[^\n])*').match(text, i).end()
        elif c == '"' or (c == "'" and not NUMBER.search(text, max(i - 40, 0), i)):
            while end < n and text[end] not in (c, '\n'):
                end += 2 if text[end] == '\\' else 1
            end += 1
        else:
            at_line_start = c == '\n' or (at_line_start and c.isspace())
            i += 1
            continue
        end = n if end < 0 else end
        erase(i, end)
        i = end
    return ''.join(out)


def pair(code):
    """{position of an opening parenthesis or brace: that of its closing one, and the reverse}."""
    pairs, stack = {}, []
    for match in re.finditer(r'[(){}]', code):
        c, at = match.group(), match.start()
        if c in '({':
            stack.append((c, at))
            continue
        # A brace ends parentheses that branches of the preprocessor have left open.
        while c == '}' and stack and stack[-1][0] == '(':
            stack.pop()
        if stack and stack[-1][0] == '({'[c == '}']:
            first = stack.pop()[1]
            pairs[first], pairs[at] = at, first
    return pairs


class Source:
    """The structure of one file."""

    def __init__(self, text):
        self.code = blank(text)
        self.pairs = pair(self.code)
        self.starts = [0] + [m.end() for m in re.finditer('\n', self.code)]
        self.braces = sorted(p for p in self.pairs if self.code[p] == '{')

    def line(self, position):
        return bisect.bisect_right(self.starts, position)

    def enclosing(self, position):
        """The opening braces around a position, the innermost first."""
        return [b for b in reversed(self.braces) if b < position < self.pairs[b]]

    def head(self, brace):
        """(what the block is, where that begins): if, switch, loop, label, else, function, or
        scope, which is all else, like a class."""
        before = self.code[:brace]
        if re.search(r'\belse\s*$', before):
            return 'else', before.rindex('else')
        if LABEL.search(before[before.rstrip().rfind('\n') + 1:]) and before.rstrip()[-1:] == ':':
            return 'label', brace
        close = len(before[:QUALIFIERS.search(before).start()].rstrip()) - 1
        if close >= 0 and self.code[close] == ')' and close in self.pairs:
            word = re.search(r'\b(\w+)\s*(?:constexpr\s*)?$', self.code[:self.pairs[close]])
            kind = word.group(1) if word else ''
            if kind in ('if', 'switch'):
                return kind, word.start()
            if kind in ('for', 'while'):
                return 'loop', word.start()
        return 'function' if close >= 0 and self.code[close] in ')]' else 'scope', brace

    def has_default(self, brace):
        """Whether the body of a switch has a default label of its own."""
        for match in DEFAULT.finditer(self.code, brace, self.pairs[brace]):
            around = self.enclosing(match.start())
            if next((b for b in around if self.head(b)[0] == 'switch'), None) == brace:
                return True
        return False


def exclude_unreachable(source, at, found):
    """What assert(false) at the position `at` says: that the rest of its block cannot be reached,
    nor the branch that leads there, or the function."""
    blocks = source.enclosing(at)
    if not blocks:
        return
    brace = blocks[0]
    end = source.pairs[brace]
    kind, start = source.head(brace)
    is_first = not source.code[brace + 1:at].strip()
    if kind == 'switch' or kind == 'label':
        body = brace if kind == 'switch' else next(
            (b for b in blocks if source.head(b)[0] == 'switch'), None)
        label = LABEL.search(source.code, at, end)
        end = label.start() if label else end
        if body is not None:
            found.dead_branches.append((source.line(source.head(body)[1]), source.line(body)))
    elif kind == 'if' and is_first:
        found.dead_branches.append((source.line(start), source.line(brace)))
    elif kind == 'function' and is_first:
        found.dead_bodies.add(source.line(brace))
    # The line of the closing brace may be one of code after the block ("} else {").
    found.lines.update(range(source.line(at), max(source.line(end), source.line(at) + 1)))


def exclusions(text):
    """The Exclusions of a file with this text."""
    source, found = Source(text), Exclusions()
    code = source.code
    for match in TEST_STATEMENT.finditer(code):
        end = source.pairs.get(match.end() - 1, match.end())
        found.lines.update(range(source.line(match.start()), source.line(end) + 1))
    for match in BRANCHING_MACRO.finditer(code):
        end = source.pairs.get(match.end() - 1, match.end())
        found.branches.update(range(source.line(match.start()), source.line(end) + 1))
    for match in STATIC_LOCAL.finditer(code):
        blocks = source.enclosing(match.end())
        if blocks and source.head(blocks[0])[0] != 'scope':
            found.branches.add(source.line(match.end()))
    for match in UNREACHABLE.finditer(code):
        exclude_unreachable(source, match.start(), found)
    for match in SWITCH.finditer(code):
        close = source.pairs.get(match.end() - 1)
        body = re.compile(r'\s*\{').match(code, close + 1) if close else None
        # All values have a label then: the compiler warns otherwise.
        if body and body.end() - 1 in source.pairs and not source.has_default(body.end() - 1):
            found.dead_branches.append((source.line(match.start()),
                                        source.line(body.end() - 1)))
    for match in DEFAULTED.finditer(code):
        found.defaulted.add(source.line(match.start()))
    return found
