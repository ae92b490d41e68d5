"""Small deliberate faults in Python source: each replaces the text of one expression or statement.

Only that text changes; comments, docstrings and line numbers stay as they are. Left alone is what no test of
behaviour sees: annotations, error messages, assertions (also ``strict`` of ``zip``), ``__all__``, ``__repr__`` and
abstract methods.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
"""Each comparison with the one that takes its place."""

COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
"""Each operator with the one that takes its place."""

PAIRS = (
    ("min", "max"),
    ("any", "all"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("bisect_left", "bisect_right"),
    ("heappush", "heappop"),
    ("logical_and", "logical_or"),
)
RENAMED = {**dict(PAIRS), **{second: first for first, second in PAIRS}}
"""Each called function with the one that takes its place."""


Replacement = tuple[str, ast.expr | ast.stmt, str, str]
"""Qualified name of the function, what is replaced, its replacement, and the latter in words if it is long."""


@dataclass(frozen=True)
class Fault:
    """A deliberate fault.

    Parameters
    ----------
    path : str
        File, relative to the repository.
    line : int
        Line number, from 1.
    function : str
        Qualified name of the function or class; empty at the level of the module.
    change : str
        Text before and after.
    repeat : int
        Number of equal changes before this one in the same function.
    begin, end : int
        Range of bytes that is replaced in the UTF-8 source.
    text : str
        Replacement.
    """

    path: str
    line: int
    function: str
    change: str
    repeat: int
    begin: int
    end: int
    text: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Identity that survives changes elsewhere in the file."""
        return self.path, self.function, self.change, self.repeat

    def applied(self, source: str) -> str:
        """Return the source with the fault."""
        whole = source.encode()
        return (whole[: self.begin] + self.text.encode() + whole[self.end :]).decode()


def faults_of(source: str, path: str = "") -> list[Fault]:
    """Return all faults of a file, in the order of its text."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    counted: Counter[tuple[str, str]] = Counter()
    found = []
    for function, node, text, note in _replacements(ast.parse(source), ""):
        assert node.end_lineno is not None and node.end_col_offset is not None
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        change = f"{_short(ast.unparse(node))} -> {note or _short(text)}"
        found.append(Fault(path, node.lineno, function, change, counted[function, change], begin, end, text))
        counted[function, change] += 1
    return sorted(found, key=lambda fault: (fault.begin, fault.end, fault.text))


def _short(text: str, longest: int = 90) -> str:
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _replacements(node: ast.AST, function: str) -> Iterator[Replacement]:
    """Yield the replacements in a node and in all below it that count."""
    for child in _below(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _replacements(child, f"{function}.{child.name}" if function else child.name)
            continue
        if isinstance(child, ast.expr):
            yield from ((function, child, *each) for each in _of_expression(child))
        elif isinstance(child, ast.stmt):
            yield from ((function, child, text, "") for text in _of_statement(child))
        if isinstance(child, ast.If | ast.While) and not _is_negated_otherwise(child.test):
            yield function, child.test, f"not ({ast.unparse(child.test)})", ""
        yield from _replacements(child, function)


def _is_negated_otherwise(test: ast.expr) -> bool:
    """Return whether another fault negates a condition already."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot | ast.In | ast.NotIn)
    return isinstance(test, ast.UnaryOp | ast.Constant)


def _below(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node whose faults a test may see."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "keywords") and not isinstance(
            node, ast.Call
        ):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield child


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__repr__", "__str__") or _is_abstract(node)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _is_abstract(node: ast.FunctionDef) -> bool:
    """Return whether the body is no more than a docstring, ``...`` or an error."""
    return all(
        isinstance(each, ast.Raise | ast.Pass)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in node.body
    )


def _of_expression(node: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the replacements of an expression, each with its description if it is not the text."""
    if isinstance(node, ast.BoolOp):
        yield from _of_conditions(node)
    else:
        yield from ((text, "") for text in _of_operation(node))


def _of_conditions(node: ast.BoolOp) -> Iterator[tuple[str, str]]:
    swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    word = "or" if isinstance(node.op, ast.And) else "and"
    yield f"({ast.unparse(ast.BoolOp(swapped, node.values))})", f"joined by '{word}'"
    for place, left_out in enumerate(node.values):
        kept = [each for position, each in enumerate(node.values) if position != place]
        text = ast.unparse(kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept))
        yield f"({text})", f"without '{_short(ast.unparse(left_out))}'"


def _of_operation(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARED:
            yield ast.unparse(ast.Compare(node.left, [COMPARED[type(operator)]()], node.comparators))
        case ast.Compare(ops=[first, *others]) if type(first) in COMPARED:
            yield ast.unparse(ast.Compare(node.left, [COMPARED[type(first)](), *others], node.comparators))
        case ast.BinOp() if type(node.op) in COMPUTED and not _is_text(node.left, node.right):
            yield f"({ast.unparse(ast.BinOp(node.left, COMPUTED[type(node.op)](), node.right))})"
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            yield from ("0", f"({ast.unparse(node.operand)})")
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield f"({ast.unparse(node.operand)})"
        case ast.IfExp():
            yield f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
        case ast.Constant(value=bool()):
            yield str(not node.value)
        case ast.Constant(value=int(number)):
            yield str(number + 1)
            if number > 0:
                yield str(number - 1)
        case ast.Call(func=ast.Name(id=name)) if name in RENAMED:
            yield _called(node, ast.Name(RENAMED[name]))
        case ast.Call(func=ast.Attribute(attr=name)) if name in RENAMED:
            assert isinstance(node.func, ast.Attribute)
            yield _called(node, ast.Attribute(node.func.value, RENAMED[name]))
        case ast.ListComp(generators=[ast.comprehension(ifs=[_, *_])]):
            yield ast.unparse(ast.ListComp(node.elt, _unfiltered(node)))
        case ast.GeneratorExp(generators=[ast.comprehension(ifs=[_, *_])]):
            yield f"({ast.unparse(ast.GeneratorExp(node.elt, _unfiltered(node)))})"


def _unfiltered(node: ast.ListComp | ast.GeneratorExp) -> list[ast.comprehension]:
    (only,) = node.generators
    return [ast.comprehension(only.target, only.iter, [], only.is_async)]


def _called(node: ast.Call, function: ast.expr) -> str:
    return ast.unparse(ast.Call(function, node.args, node.keywords))


def _is_text(*operands: ast.expr) -> bool:
    """Return whether an operand is text: such a sum is a message."""
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in operands
    )


def _of_statement(node: ast.stmt) -> Iterator[str]:
    match node:
        case (
            ast.Expr(value=ast.Call()) | ast.Delete() | ast.Continue() | ast.Break() | ast.Return(value=None)
        ):
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield "pass"
        case ast.AugAssign():
            yield "pass"
            if type(node.op) in COMPUTED:
                yield ast.unparse(ast.AugAssign(node.target, COMPUTED[type(node.op)](), node.value))
