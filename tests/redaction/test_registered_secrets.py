"""Known secrets: which there are, and that notebooks, files, servers and logs save none of them."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.support.kernels import running_kernel
from tests.support.secret_samples import made_up_key
from tests.support.servers import Gated, ask, call, serving, text_of, words
from toolcall_nb import register_secret
from toolcall_nb.cli import main
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Message, TextPart, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.models.config import Config
from toolcall_nb.notebook.environment import Environment
from toolcall_nb.redaction import registered_secrets as secrets
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.redaction.registered_secrets import known_secrets, mask
from toolcall_nb.tools import registry

SECRET = made_up_key("quiet-", 30)
MARK = "[masked: MY_SERVICE_KEY]"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(secrets, "_switch", {"on": True})
    monkeypatch.setenv("MY_SERVICE_KEY", SECRET)
    secrets.REGISTERED.clear()
    yield
    secrets.REGISTERED.clear()


# Which are known


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "clientSecret", "AWS_SECRET_ACCESS_KEY", "TOKEN_2", "db_pwd"],
)
def test_a_variable_with_the_name_of_a_key_holds_a_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"{SECRET}x")
    assert known_secrets()[f"{SECRET}x"] == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KEYBOARD", SECRET[:-1]),
        ("TOKENIZERS_PARALLELISM", "false-or-1234"),
        ("KEY_FILE", SECRET[:-1]),
        ("MAX_TOKENS", "1234567890"),
        ("MY_TOKEN", "1234567890"),
        ("MY_PASSWORD", "postgres"),
        ("MY_SECRET", "short1"),
        ("MY_KEY", str(Path(__file__))),
        ("MY_KEY", "~/.ssh/id_ed25519"),
        ("MY_TOKEN", "https://example.org/token12"),
    ],
)
def test_other_variables_hold_no_secret(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert value not in known_secrets()


def test_the_password_in_an_address_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://me:p%2Fss-w0rd1@db.example.org/main")
    assert known_secrets()["p/ss-w0rd1"] == "DATABASE_URL"


def test_a_registered_secret_is_known_and_a_short_one_refused() -> None:
    register_secret("not a word of it", "HOUSE")
    assert known_secrets()["not a word of it"] == "HOUSE"
    with pytest.raises(UsageError, match="6 characters"):
        register_secret("short")


def test_a_models_key_is_known_as_long_as_it_is_in_use() -> None:
    config = Config(api_key=f"{SECRET}-of-a-model")
    assert f"{SECRET}-of-a-model" in known_secrets()
    del config
    gc.collect()
    assert f"{SECRET}-of-a-model" not in known_secrets()


# A notebook


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    before = set(registry)
    make: Any = InteractiveShell
    shell = make()
    shell.run_line_magic("load_ext", "toolcall_nb")
    yield shell
    shell.run_line_magic("unload_ext", "toolcall_nb")
    for name in set(registry) - before:
        registry.remove(name)
    shell.restore_sys_module_state()


class Says:
    """A model that says the secret in pieces, and calls a tool with it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.given: list[str] = []

    name = "says"

    def stream(self, messages: Any, tools: Any) -> Iterator[ev.Event]:
        self.asked.append(messages)
        yield ev.TextStart("t")
        for character in f"It is {SECRET}.":
            yield ev.TextDelta("t", character)
        yield ev.TextEnd("t")
        if len(self.asked) == 1:
            yield ev.ToolInputAvailable("c", "use", {"value": SECRET})

    def use(self, value: str) -> str:
        """Uses it."""
        self.given.append(value)
        print(f"printed {value}")
        return f"used {value}"


def displayed(shell: Any, cell: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    with monkeypatch.context() as patch:
        patch.setattr("toolcall_nb.notebook.conversations.find_environment", lambda _: Environment.STATIC)
        patch.setattr("IPython.display.display", lambda bundle, **_: found.append(bundle))
        patch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
        assert shell.run_cell(cell).success
    return found


def test_a_cell_saves_no_secret_and_counts_them_while_tool_and_model_have_it(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Says()
    shell.user_ns |= {"model": model, "use": [model.use]}
    (bundle,) = displayed(shell, "%%toolchat --model model --tools use\nGo", monkeypatch)
    assert [kind for kind, text in bundle.items() if SECRET in text] == []
    assert [kind for kind, text in bundle.items() if MARK in text] == [*bundle]
    assert "1 secret masked" in bundle["text/html"]
    assert "1 secret masked" in bundle["text/plain"]
    assert Transcript.from_markdown(bundle["text/markdown"]).calls["c"].input == {"value": MARK}
    assert model.given == [SECRET]
    assert SECRET in repr(model.asked[1])
    assert SECRET in shell.user_ns["chat"].transcript.to_markdown()


@pytest.mark.parametrize(
    "expression",
    [
        "show(chat)",
        "show(chat.transcript)",
        "%toolchat show",
        "%toolchat show c",
        "show(says)",
    ],
)
def test_a_transcript_shown_again_has_no_secret(expression: str, shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Says()
    shell.user_ns |= {"model": model, "use": [model.use], "says": [{"role": "user", "content": SECRET}]}
    displayed(shell, "%%toolchat --model model --tools use\nGo", monkeypatch)
    (bundle,) = displayed(shell, f"from toolcall_nb import show\n{expression}", monkeypatch)
    assert [kind for kind, text in bundle.items() if SECRET in text] == []
    assert "1 secret masked" in bundle["text/html"]
    assert "1 secret masked" in bundle["text/plain"]


def test_a_transcript_that_displays_itself_is_masked() -> None:
    bundle = Transcript((Message("user", (TextPart(SECRET),)),))._repr_mimebundle_()
    assert [kind for kind, text in bundle.items() if MARK in text and SECRET not in text] == [*bundle]


def test_a_file_is_saved_without_secrets_and_their_number_is_printed(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Says()
    shell.user_ns |= {"model": model, "use": [model.use]}
    displayed(shell, "%%toolchat --model model --tools use\nGo", monkeypatch)
    capsys.readouterr()
    shell.run_cell("%toolchat save said.md")
    assert capsys.readouterr().out == "Saved the thread 'main' to said.md · 1 secret masked\n"
    assert SECRET not in Path("said.md").read_text("utf-8")
    shell.run_cell("%toolchat code c")
    assert f"use(value='{MARK}')" in capsys.readouterr().out.replace('"', "'")
    shell.run_cell("%toolchat secrets off\n%toolchat save said.md")
    assert SECRET in Path("said.md").read_text("utf-8")


def test_masked_secrets_are_listed_by_name_and_number_without_values(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Says()
    shell.user_ns |= {"model": model, "use": [model.use], "mine": "quite another one"}
    displayed(shell, "%%toolchat --model model --tools use\nGo", monkeypatch)
    shell.run_cell("%toolchat secrets add mine\n%toolchat secrets add sk-typed-in-here")
    said = "".join(capsys.readouterr())
    assert "secrets: masked" in said
    assert "MY_SERVICE_KEY" in said
    assert "mine" in said
    assert "in this thread: MY_SERVICE_KEY, 5 times" in said
    assert not any(value in said for value in (SECRET, "quite another one", "sk-typed-in-here"))
    assert known_secrets()["quite another one"] == "mine"


def test_our_errors_have_no_secrets(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(f"%toolchat thread x\n%toolchat show {SECRET}")
    said = "".join(capsys.readouterr())
    assert MARK in said
    assert SECRET not in said.replace(f"show {SECRET}", "")


def test_a_notebook_of_a_real_kernel_has_no_secret(tmp_path: Path) -> None:
    cell = (
        "%load_ext toolcall_nb\nimport os\nfrom toolcall_nb import tool\n"
        "@tool\ndef weather(city: str) -> str:\n    'The weather.'\n    given.append(os.environ['MY_SERVICE_KEY'])\n"
        "    print(given[-1])\n    return given[-1]\ngiven = []"
    )
    with running_kernel(tmp_path) as kernel:
        kernel.run(cell)
        found = kernel.run("%%toolchat --speed 0\nThe weather in Paris?", attended=False)
        used = kernel.run("print(given == [os.environ['MY_SERVICE_KEY']])")
    assert "True" in repr(used)
    shown = [message for message in found if message["msg_type"] in ("display_data", "update_display_data")]
    assert MARK in repr(shown)
    assert SECRET not in repr(found)


# Files of the command line


def test_an_exported_page_has_no_secret_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "said.md").write_text(f"The key is {SECRET}.")
    assert main(["render", str(tmp_path / "said.md"), "-o", str(tmp_path / "said.html")]) == 0
    assert capsys.readouterr().err == "toolcall-nb: 1 secret masked\n"
    assert SECRET not in (tmp_path / "said.html").read_text()
    assert main(["render", str(tmp_path / "said.md"), "--no-masking"]) == 0
    assert SECRET in capsys.readouterr().out


# A server


def use(value: str) -> str:
    """Uses it."""
    USED.append(value)
    return f"used {value}"


USED: list[str] = []


def test_a_stored_conversation_has_no_secret_while_the_one_in_memory_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    USED.clear()
    model = Gated(call("c", "use", value=SECRET), words(f"It is {SECRET} ."), words("Again."))
    with serving(model, tools=[use], store=str(tmp_path)) as client:
        assert SECRET in text_of(ask(client).text)
        ask(client, "And?")
        documents = [
            client.get("/api/threads/t", headers={"accept": f"text/{form}"}).text for form in ("markdown", "html")
        ]
    assert USED == [SECRET]
    assert SECRET in repr(model.asked[2])
    for text in ((tmp_path / "t.md").read_text("utf-8"), *documents):
        assert MARK in text
        assert SECRET not in text
    assert SECRET not in caplog.text
    assert "The thread t is stored with 1 secret masked" in caplog.text
    later = Gated(words("Yes."))
    with serving(later, tools=[use], store=str(tmp_path)) as client:
        ask(client, "Still?")
    assert MARK in repr(later.asked[0])
    assert SECRET not in repr(later.asked[0])


def test_a_conversation_is_stored_unchanged_if_masking_is_off(tmp_path: Path) -> None:
    with serving(Gated(words(SECRET)), store=str(tmp_path), masking=False) as client:
        ask(client)
    assert SECRET in (tmp_path / "t.md").read_text("utf-8")


# Logs


def test_a_log_record_has_no_secret_in_message_arguments_and_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log = logger("toolcall_nb.tests")
    with caplog.at_level(logging.DEBUG):
        log.info("It is %s, %d times", SECRET, 2)
        log.warning(f"It is {SECRET}")
        try:
            raise ValueError(f"wrong: {SECRET}")
        except ValueError:
            log.exception("It failed")
        log.info("too few %s %s", SECRET)
    assert caplog.text.count(MARK) == 3
    assert SECRET not in caplog.text
    assert "ValueError: wrong" in caplog.text
    assert not any(SECRET in repr(vars(record)) for record in caplog.records)


def test_a_log_record_without_secrets_is_not_changed(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("wrong")
    except ValueError:
        logger("toolcall_nb.tests").exception("It failed for %s", "this")
    (record,) = caplog.records
    assert (record.msg, record.args, (record.exc_info or [None])[0]) == ("It failed for %s", ("this",), ValueError)


def test_every_logger_of_the_package_masks_and_other_loggers_do_not() -> None:
    source = Path(secrets.__file__).parents[1]
    texts = {path.name: path.read_text("utf-8") for path in source.rglob("*.py")}
    assert {name for name, text in texts.items() if "logging.getLogger" in text} == {"masked_logging.py", "targets.py"}
    assert logging.getLogger("mcp").filters == []
    assert logging.getLogger().filters == []


def test_logs_are_masked_even_if_files_are_not(caplog: pytest.LogCaptureFixture) -> None:
    mask(False)
    logger("toolcall_nb.tests").warning("It is %s", os.environ["MY_SERVICE_KEY"])
    assert SECRET not in caplog.text
