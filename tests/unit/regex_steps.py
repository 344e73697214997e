"""A backtracking matcher that decides like `re` and counts its steps.

`re` does not report the work of a match, and timing needs a quiet machine. This matcher compiles the tree that `re`
parses into a small program, so the steps for a text are the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Registers = tuple[int | None, ...]
UNBOUNDED = int(parser.MAXREPEAT)
_SINGLE = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
"""Nodes that match one character."""


class TooMany(Exception):
    """The match took more steps than allowed."""


@dataclass
class Program:
    """A list of instructions: a name and its arguments; jumps are indices."""

    code: list[tuple[Any, ...]] = field(default_factory=list)
    registers: int = 0

    def add(self, *instruction: Any) -> int:
        self.code.append(instruction)
        return len(self.code) - 1


class Matcher:
    """Matches one pattern. `bound` limits repetitions, which changes constants, not how the work grows."""

    def __init__(self, pattern: re.Pattern[Any], *, bound: int | None = None) -> None:
        self._bytes = isinstance(pattern.pattern, bytes)
        flags = pattern.flags if self._bytes else pattern.flags & ~re.UNICODE
        tree = parser.parse(pattern.pattern, flags)
        self._state = tree.state
        self._flags = tree.state.flags
        self._bound = bound
        self._loops = 2 * tree.state.groups
        self._whole = self._program(tree)
        self.steps = 0
        self._limit = UNBOUNDED

    def fullmatch(self, text: Any, *, limit: int = UNBOUNDED) -> bool:
        self.steps, self._limit = 0, limit
        return self._run(self._whole, text, 0, (None,) * self._loops, whole=True) is not None

    def sub(self, text: Any, *, limit: int = UNBOUNDED) -> list[tuple[int, int]]:
        """Where `re.sub` would replace something."""
        self.steps, self._limit = 0, limit
        found: list[tuple[int, int]] = []
        at, last = 0, -1
        while at <= len(text):
            result = self._run(self._whole, text, at, (None,) * self._loops, not_empty_at=last)
            if result is None:
                at += 1
            else:
                found.append((at, result[0]))
                last = result[0] if result[0] == at else -1
                at = result[0]
        return found

    def _program(self, tree: Any) -> Program:
        program = Program()
        self._compile(tree, program)
        program.add("match")
        return program

    def _compile(self, tree: Any, program: Program) -> None:
        for node in tree:
            operation, given = str(node[0]), node[1]
            match operation:
                case name if name in _SINGLE:
                    program.add("character", self._test_of(node))
                case "AT":
                    program.add("position", self._alone(node))
                case "SUBPATTERN":
                    group, added, removed, inner = given
                    assert added == removed == 0, "flags of a group"
                    if group is not None:
                        program.add("save", 2 * (group - 1))
                    self._compile(inner, program)
                    if group is not None:
                        program.add("save", 2 * (group - 1) + 1)
                case "BRANCH":
                    self._branch(given[1], program)
                case "MAX_REPEAT" | "MIN_REPEAT":
                    self._repeat(program, *given, greedy=operation == "MAX_REPEAT")
                case "POSSESSIVE_REPEAT":
                    if [str(node[0]) in _SINGLE for node in given[2]] != [True]:
                        raise NotImplementedError("a group that is repeated possessively: Python 3.11.2 gets it wrong")
                    inner = Program()
                    self._repeat(inner, *given, greedy=True)
                    inner.add("match")
                    program.add("atomic", inner)
                case "ASSERT" | "ASSERT_NOT":
                    direction, inner = given
                    back = 0
                    if direction < 0:
                        back, most = inner.getwidth()
                        assert back == most, "a lookbehind of fixed width"
                    program.add("look", self._program(inner), back, operation == "ASSERT")
                case "GROUPREF":
                    program.add("again", given)
                case _:
                    raise NotImplementedError(operation)

    def _branch(self, branches: list[Any], program: Program) -> None:
        ends: list[int] = []
        for branch in branches[:-1]:
            split = program.add()
            self._compile(branch, program)
            ends.append(program.add())
            program.code[split] = ("split", split + 1, len(program.code))
        self._compile(branches[-1], program)
        for end in ends:
            program.code[end] = ("jump", len(program.code))

    def _repeat(self, program: Program, least: int, most: int, inner: Any, *, greedy: bool) -> None:
        unbounded = most == UNBOUNDED
        if self._bound is not None:
            least, most = min(least, self._bound), min(most, self._bound)
        for _ in range(least):
            self._compile(inner, program)
        if unbounded:
            register = self._loops
            self._loops += 1
            split = program.add()
            program.add("save", register)
            self._compile(inner, program)
            program.add("moved", register)
            program.add("jump", split)
            self._split(program, split, greedy=greedy)
            return
        splits: list[int] = []
        for _ in range(most - least):
            splits.append(program.add())
            self._compile(inner, program)
        for split in splits:
            self._split(program, split, greedy=greedy)

    def _split(self, program: Program, split: int, *, greedy: bool) -> None:
        ways = (split + 1, len(program.code))
        program.code[split] = ("split", *(ways if greedy else reversed(ways)))

    def _alone(self, node: Any) -> re.Pattern[Any]:
        """A pattern of this node alone, compiled by `re`, for the meaning of characters and positions."""
        tree = parser.SubPattern(self._state, [node])
        made = compiler.compile(tree, self._flags)
        assert isinstance(made, re.Pattern)
        return made

    def _test_of(self, node: Any) -> Callable[[Any], bool]:
        pattern, known = self._alone(node), dict[Any, bool]()

        def test(character: Any) -> bool:
            fits = known.get(character)
            if fits is None:
                given = bytes([character]) if self._bytes else character
                fits = known[character] = pattern.match(given) is not None
            return fits

        return test

    def _run(
        self,
        program: Program,
        text: Any,
        start: int,
        registers: Registers,
        *,
        whole: bool = False,
        not_empty_at: int = -1,
    ) -> tuple[int, Registers] | None:
        """Where the first match from here ends, and its registers."""
        code, length = program.code, len(text)
        waiting: list[tuple[int, int, Registers]] = [(0, start, registers)]
        while waiting:
            here, at, registers = waiting.pop()
            while True:
                self.steps += 1
                if self.steps > self._limit:
                    raise TooMany
                instruction = code[here]
                here += 1
                name = instruction[0]
                if name == "character":
                    if at == length or not instruction[1](text[at]):
                        break
                    at += 1
                elif name == "split":
                    waiting.append((instruction[2], at, registers))
                    here = instruction[1]
                elif name == "jump":
                    here = instruction[1]
                elif name == "save":
                    registers = (*registers[: instruction[1]], at, *registers[instruction[1] + 1 :])
                elif name == "moved":
                    if registers[instruction[1]] == at:
                        break
                elif name == "position":
                    if instruction[1].match(text, at) is None:
                        break
                elif name == "atomic":
                    inner = self._run(instruction[1], text, at, registers)
                    if inner is None:
                        break
                    at, registers = inner
                elif name == "look":
                    inner = None
                    if at >= instruction[2]:
                        inner = self._run(instruction[1], text, at - instruction[2], registers)
                    if (inner is not None) is not instruction[3]:
                        break
                    registers = inner[1] if inner is not None else registers
                elif name == "again":
                    begin, end = registers[2 * (instruction[1] - 1) : 2 * instruction[1]]
                    if begin is None or end is None or text[begin:end] != text[at : at + end - begin]:
                        break
                    at += end - begin
                elif (whole and at != length) or at == not_empty_at == start:
                    break
                else:
                    return at, registers
        return None
