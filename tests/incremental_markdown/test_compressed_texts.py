"""A list of texts whose beginning is compressed is still a list."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.profile import share_of
from toolcall_nb.incremental_markdown.incremental import CompressedTexts

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)


class AsAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.packed, self.plain, self.settled = CompressedTexts(), [""][:0], 0

    @rule(texts=st.lists(TEXT, max_size=400))
    def append(self, texts: list[str]) -> None:
        for text in texts:
            self.packed.append(text)
        self.plain += texts

    @rule(part=st.floats(0, 1))
    def pack(self, part: float) -> None:
        self.settled = max(self.settled, int(part * len(self.plain)))
        self.packed.pack(self.settled)

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        length = self.settled + int(part * (len(self.plain) - self.settled))
        self.packed.truncate(length)
        del self.plain[length:]

    @precondition(lambda self: self.plain)
    @rule(part=st.floats(0, 1, exclude_max=True), text=TEXT)
    def replace(self, part: float, text: str) -> None:
        number = int(part * len(self.plain))
        assert self.packed.replace(number, text) == self.plain[number]
        self.plain[number] = text
        assert self.packed[number] == text

    @invariant()
    def is_the_same(self) -> None:
        assert list(self.packed) == self.plain
        assert len(self.packed) == len(self.plain)
        assert list(self.packed[-3:]) == self.plain[-3:]


TestAsAList = AsAList.TestCase
TestAsAList.settings = settings(max_examples=share_of(100), stateful_step_count=12, deadline=None)


def test_compressed_texts_take_little_memory() -> None:
    packed = CompressedTexts()
    for number in range(1000):
        packed.append(f"<p>This is paragraph {number}.</p>\n")
    packed.pack_all()
    assert sum(map(len, packed._packs)) < len("".join(packed)) / 4
    assert packed[999] == "<p>This is paragraph 999.</p>\n"
