"""The configuration file: strict, with errors that name the key and the remedy."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from bitwatch import config as configuration
from bitwatch.config import ConfigError
from tests.conftest import TINY

DEMO = configuration.bundled("configs/demo.toml")


@pytest.mark.parametrize("name", ["demo", "1b21", "680m"])
def test_a_bundled_configuration_survives_being_written_and_read(name: str) -> None:
    config = configuration.load(configuration.find(name))
    again = configuration.parse(tomllib.loads(configuration.dump(config)), "again")
    assert again == config


def test_the_incidents_numbers_are_in_1b21() -> None:
    config = configuration.load(configuration.find("1b21"))
    assert (config.model.d_model, config.model.heads, config.model.layers) == (2048, 32, 24)
    assert (config.model.feedforward, config.model.context) == (8192, 2048)
    assert (config.parallel.ranks, config.data.workers) == (4, 4)
    assert config.parallel.device == "cuda"
    assert config.model.expected_parameters == 1_208_606_722


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("train.stpes=3", "train.stpes: unknown key; did you mean train.steps?"),
        ("modl.layers=3", "modl: unknown key; did you mean model?"),
        ("parallel.workers=3", "parallel.workers: unknown key; did you mean data.workers?"),
        ("train.steps=many", 'train.steps: must be a whole number, not "many"'),
        ("train.steps=0", "train.steps: must be greater than 0, not 0"),
        ("parallel.ranks=0", "parallel.ranks: must be greater than 0, not 0"),
        ("train.micro_batch=0", "train.micro_batch: must be greater than 0, not 0"),
        ("model.heads=0", "model.heads: must be greater than 0, not 0"),
        ("model.expected_parameters=0", "model.expected_parameters: must be greater than 0"),
        ("watch.sample_s=1e-9", "watch.sample_s: must be at least 0.1, not 1e-09"),
        ("data.workers=-1", "data.workers: must be 0 or more, not -1"),
        ("train.learning_rate=nan", "train.learning_rate: must be a finite number, not nan"),
        ("data=3", "data: must be a table, not 3"),
        ("model.heads=3", "model.heads: 3 heads do not divide d_model 32; use 2"),
        ("model.heads=32", "model.heads: 32 heads of width 1; rotary positions need an even"),
        ("train.batch=7", "train.batch: 7 is not a multiple of ranks x micro_batch = 2 x 4; use 8"),
        ("model.context=7", "model.context: 7 bits hold no whole byte; use at least 8"),
        ("data.start_method=forkserver", "parent-death signal cannot see through it"),
        ("data.cache_limit_gib=0", "data.cache_limit_gib: must be greater than 0, not 0"),
        ("run.name=\"a/b\"", "run.name: 'a/b' becomes a folder name"),
        ("steps=3", "steps: unknown key; did you mean train.steps?"),
        ("train.steps", "must look like train.steps=100"),
        ("run.name.x=3", "run.name is a value, not a section"),
        ("train.steps=1\nbatch=7", 'train.steps: must be a whole number, not "1\\nbatch=7"'),
        ("train.steps=99999999999999", "train.steps: must be at most 1,000,000,000,000"),
        ("train.steps=" + "9" * 10_000, "train.steps: must be a whole number"),
        ("data.source=\udcff", "is not valid text"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_one_sentence_with_key_and_remedy(
    tmp_path: Path, change: str, said: str
) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    with pytest.raises(ConfigError) as caught:
        configuration.load(path, [change])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_take_toml_values_and_plain_words() -> None:
    changes = ["run.name=night", "train.steps=7", "train.warmup=2", "data.source='a b'"]
    config = configuration.load(DEMO, changes)
    assert config.run.name == "night"
    assert (config.train.steps, config.train.warmup) == (7, 2)
    assert config.data.source == "a b"


def test_a_missing_key_is_named_with_its_section(tmp_path: Path) -> None:
    path = tmp_path / "half.toml"
    path.write_text("[model]\nd_model = 8\n")
    with pytest.raises(ConfigError, match=r"model\.heads: this key is missing"):
        configuration.load(path)
    path.write_text("")
    with pytest.raises(ConfigError, match="model: this section is missing"):
        configuration.load(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\xff\xfe\x00", "is not a text file"),
        (b"[model\n", "is not valid TOML"),
        (b"a = " + b"[" * 100_000, "is not valid TOML"),
        (b"a = " + b"9" * 10_000, "is not valid TOML"),
        (None, "no such file"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        configuration.load(path)


def test_a_folder_is_not_a_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        configuration.load(tmp_path)


def test_an_older_record_is_read_leniently(tmp_path: Path) -> None:
    path = tmp_path / "old.toml"
    path.write_text(DEMO.read_text().replace("[train]", "[train]\nforgotten = 3"))
    with pytest.raises(ConfigError, match="forgotten"):
        configuration.load(path)
    assert configuration.load(path, lenient=True) == configuration.load(DEMO)


def test_unknown_names_list_what_is_bundled() -> None:
    with pytest.raises(ConfigError, match="1b21, 680m, demo"):
        configuration.find("nothing-like-this.toml")


def test_home_is_the_environment_then_the_users_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("BITWATCH_HOME", raising=False)
    assert configuration.home() == tmp_path / "state" / "bitwatch" / "runs"
    own = configuration.user_file()
    own.parent.mkdir(parents=True)
    own.write_text(f'[folders]\nruns = "{tmp_path}/mine"\n')
    assert configuration.home() == tmp_path / "mine"
    monkeypatch.setenv("BITWATCH_HOME", str(tmp_path / "first"))
    assert configuration.home() == tmp_path / "first"


def test_the_users_file_is_as_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = configuration.user_file()
    own.parent.mkdir(parents=True)
    own.write_text("[folder]\nruns = 'x'\n")
    with pytest.raises(ConfigError, match="folder: unknown key; did you mean folders"):
        configuration.load_user()
    own.write_text("notify_command = 'beep'\n")
    assert configuration.load_user().notify_command == "beep"


def test_the_users_file_holds_keys_as_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = configuration.user_file()
    own.parent.mkdir(parents=True)
    own.write_text('[keys]\nstop = "ctrl+s,f12"\nsort-back = ""\n')
    assert configuration.load_user().keys == {"stop": "ctrl+s,f12", "sort-back": ""}
    for wrong, words in (
        ('[keys]\nwhy = "w"\nstop = 3\n', "keys.stop: must be a string, not 3"),
        ("keys = 'x'\n", 'keys: must be a table, not "x"'),
    ):
        own.write_text(wrong)
        with pytest.raises(ConfigError, match=f"config.toml: {words}"):
            configuration.load_user()


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """In a child that has dropped root's uid: as root it would be readable whatever we do."""
    path = tmp_path / "secret.toml"
    path.write_text(DEMO.read_text())
    path.chmod(0)
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            configuration.load(path)
            os.write(writing, b"it was read")
        except ConfigError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with open(reading, "rb") as said:
        assert said.read().decode() == f"{path}: cannot be read: Permission denied"


def test_places_become_absolute_and_names_stay(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "validation").mkdir()

    def anchored(*changes: str) -> configuration.Config:
        return configuration.anchored(configuration.load(DEMO, changes), tmp_path)

    for given, kept in (
        ("bundled:austen", "bundled:austen"),
        ("Owner/name", "Owner/name"),
        ("texts", f"{tmp_path}/texts"),
        ("./missing", f"{tmp_path}/missing"),
        ("texts/*.txt", f"{tmp_path}/texts/*.txt"),
        ("/elsewhere", "/elsewhere"),
    ):
        assert anchored(f"data.source={given}").data.source == kept
    assert anchored("data.validation=validation").data.validation == "validation"  # a split
    assert anchored("data.validation=texts/a.txt").data.validation == "texts/a.txt"
    (tmp_path / "texts" / "a.txt").touch()
    assert anchored("data.validation=texts/a.txt").data.validation == f"{tmp_path}/texts/a.txt"
    assert anchored("checkpoint.folder=kept").checkpoint.folder == f"{tmp_path}/kept"
    assert anchored().checkpoint.folder is None
    assert anchored("data.cache=kept").data.cache == f"{tmp_path}/kept"
    assert anchored().data.cache is None
