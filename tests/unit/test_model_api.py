"""The fake model API over real sockets: what clients see of answers and of every fault, byte by
byte.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mutiny.doubles.model_api.api import ModelApi
from mutiny.doubles.model_api.requests import RequestParser
from mutiny.doubles.model_api.script import (
    FAULTS,
    Rule,
    Script,
    ScriptError,
    Step,
    Tool,
    read_script,
    simple_script,
)

LIMIT_S = 10
PATHS = ("/v1/messages", "/v1/chat/completions", "/v1/responses")
TEXT = "Hello there, old sea dog."


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ModelApi]:
    with ModelApi(simple_script(Step(text=TEXT)), log=tmp_path / "log.jsonl") as made:
        yield made


def body(*, stream: bool = False, model: str = "claude-x", **more: Any) -> bytes:
    message = {"role": "user", "content": [{"type": "text", "text": "MT-7f3a-2 please"}]}
    asked = {"model": model, "stream": stream, "messages": [message], **more}
    return json.dumps(asked).encode()


def connect(api: ModelApi) -> http.client.HTTPConnection:
    assert api.address is not None
    return http.client.HTTPConnection(*api.address, timeout=LIMIT_S)


def post(api: ModelApi, path: str, *, stream: bool = False, **more: Any) -> tuple[int, str, Any]:
    line = connect(api)
    line.request("POST", path, body(stream=stream, **more))
    answer = line.getresponse()
    data = answer.read().decode()
    line.close()
    return answer.status, data, answer.headers


def raw(api: ModelApi, path: str, *, stream: bool, until_s: float = LIMIT_S) -> tuple[bytes, str]:
    """Everything that arrives, and how it ended: closed, reset or silent."""
    assert api.address is not None
    asked = body(stream=stream)
    with socket.create_connection(api.address, timeout=until_s) as line:
        line.sendall(
            b"POST %b HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % (path.encode(), len(asked))
        )
        line.sendall(asked)
        seen = bytearray()
        try:
            while data := line.recv(65536):
                seen += data
        except ConnectionResetError:
            return bytes(seen), "reset"
        except TimeoutError:
            return bytes(seen), "silent"
    return bytes(seen), "closed"


def events(text: str) -> list[Any]:
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def said(path: str, data: Any) -> str:
    if path == PATHS[0]:
        return str(data["content"][0]["text"])
    if path == PATHS[1]:
        return str(data["choices"][0]["message"]["content"])
    return str(data["output"][0]["content"][0]["text"])


def streamed(path: str, items: list[Any]) -> str:
    if path == PATHS[0]:
        return "".join(item["delta"].get("text", "") for item in items if "delta" in item)
    if path == PATHS[1]:
        return "".join(item["choices"][0]["delta"].get("content", "") for item in items)
    return "".join(item["delta"] for item in items if item["type"].endswith("text.delta"))


@pytest.mark.parametrize("path", PATHS)
def test_plain_and_streamed_answers_say_the_same(api: ModelApi, path: str) -> None:
    status, plain, _ = post(api, path)
    assert (status, said(path, json.loads(plain))) == (200, TEXT)
    status, stream, headers = post(api, path, stream=True)
    assert headers["content-type"].startswith("text/event-stream")
    assert (status, streamed(path, events(stream))) == (200, TEXT)


def test_tool_calls_have_their_arguments_in_every_shape(api: ModelApi) -> None:
    api.set_script(simple_script(Step(tools=(Tool("write", {"path": "a.txt"}),))))
    wanted = '{"path": "a.txt"}'
    message = json.loads(post(api, PATHS[0])[1])
    assert message["stop_reason"] == "tool_use"
    assert message["content"][1]["input"] == {"path": "a.txt"}
    parts = [
        item["delta"].get("partial_json")
        for item in events(post(api, PATHS[0], stream=True)[1])
        if "delta" in item
    ]
    assert wanted in parts
    chat = json.loads(post(api, PATHS[1])[1])["choices"][0]
    assert chat["message"]["tool_calls"][0]["function"]["arguments"] == wanted
    assert json.loads(post(api, PATHS[2])[1])["output"][1]["arguments"] == wanted


CALLED = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c1", "name": "n", "input": {}}],
}
ANSWERED = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}],
}
UNNAMED = {"role": "user", "content": [{"type": "tool_result", "content": "done"}]}
SAID = {"role": "user", "content": "and now?"}


@pytest.mark.parametrize(
    ("messages", "refused"),
    [
        ([SAID, CALLED, ANSWERED], ""),
        ([SAID, CALLED], ""),
        ([SAID], ""),
        ([], "at least one message"),
        ([UNNAMED], "messages.0.content.0.tool_result.tool_use_id: Field required"),
        ([SAID, ANSWERED], "messages.1: tool_result of c1, which nobody called"),
        ([SAID, CALLED, SAID], "messages.2: tool_use c1 without its tool_result"),
        ([SAID, CALLED, ANSWERED, ANSWERED], "messages.3: tool_result of c1"),
        ([{"role": "user", "content": " "}], "messages.0: content must not be empty"),
        ([{"role": "user", "content": []}], "messages.0: content must not be empty"),
    ],
    ids=lambda value: value[:24].strip() if isinstance(value, str) else len(value),
)
def test_a_conversation_is_refused_as_the_real_one_would(
    api: ModelApi, messages: list[object], refused: str
) -> None:
    line = connect(api)
    line.request("POST", "/v1/messages", json.dumps({"model": "m", "messages": messages}).encode())
    answer = line.getresponse()
    text = answer.read().decode()
    line.close()
    assert answer.status == (400 if refused else 200)
    assert refused in text


def test_the_other_paths(api: ModelApi) -> None:
    assert json.loads(post(api, "/v1/messages/count_tokens")[1])["input_tokens"] > 0
    assert post(api, "/v1/nothing")[0] == 404
    line = connect(api)
    line.request("GET", "/v1/models", headers={"anthropic-version": "2023-06-01"})
    assert json.loads(line.getresponse().read())["has_more"] is False
    line.request("GET", "/v1/models")
    assert json.loads(line.getresponse().read())["object"] == "list"
    line.request("POST", "/v1/messages", b"not json")
    assert line.getresponse().status == 400
    line.close()


def test_usage_in_a_chat_stream_comes_when_it_is_asked_for(api: ModelApi) -> None:
    stream = post(api, PATHS[1], stream=True, stream_options={"include_usage": True})[1]
    assert events(stream)[-1]["usage"]["total_tokens"] > 0
    assert stream.endswith("data: [DONE]\n\n")


def test_steps_go_forward_by_rule_and_the_last_repeats(api: ModelApi) -> None:
    opus = Rule((Step(fault="500"),), model="*opus*")
    chat = Rule((Step(text="one"), Step(text="two")), path=PATHS[1])
    api.set_script(Script((opus, chat)))
    told = [said(PATHS[1], json.loads(post(api, PATHS[1])[1])) for _ in range(3)]
    assert told == ["one", "two", "two"]
    assert post(api, PATHS[0], model="claude-opus-4")[0] == 500
    assert post(api, PATHS[0])[0] == 200, "no rule: the plain answer"


def test_the_last_text_chooses_a_rule_and_times_lets_the_next_one_answer(api: ModelApi) -> None:
    faulty = Rule((Step(text="not yet"),), last="*MT-7f3a*", times=2)
    right = Rule((Step(text="yours"),), last="*MT-7f3a*please")
    other = Rule((Step(text="another's"),), last="*MT-9*")
    api.set_script(Script((other, faulty, right)))
    said = [json.loads(post(api, PATHS[0])[1])["content"][0]["text"] for _ in range(3)]
    assert said == ["not yet", "not yet", "yours"]


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [("429", 429, "rate_limit_error"), ("529", 529, "overloaded_error"), ("500", 500, "api_error")],
)
@pytest.mark.parametrize("path", PATHS)
def test_refusals(api: ModelApi, fault: str, status: int, kind: str, path: str) -> None:
    api.set_script(simple_script(Step(fault=fault, retry_after_s=7), Step(text=TEXT)))
    found, data, headers = post(api, path)
    assert (found, json.loads(data)["error"]["type"]) == (status, kind)
    assert headers["retry-after"] == "7"
    assert post(api, path)[0] == 200, "the next attempt gets its answer"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "ending", "headers"),
    [
        ("reset", "reset", False),
        ("close", "closed", False),
        ("hang", "silent", False),
        ("reset-midway", "reset", True),
        ("close-midway", "closed", True),
        ("stall", "silent", True),
        ("truncated", "closed", True),
    ],
)
def test_broken_connections(
    api: ModelApi, fault: str, ending: str, headers: bool, stream: bool
) -> None:
    api.set_script(simple_script(Step(text=TEXT, fault=fault)))
    seen, how = raw(api, PATHS[0], stream=stream, until_s=0.5 if ending == "silent" else LIMIT_S)
    assert how == ending
    # A reset may overtake what was sent before it; everything else delivers its half.
    if how != "reset":
        assert bool(seen) == headers
    if headers and how != "reset":
        whole = b"message_stop" in seen or seen.endswith(b"}}")
        assert b"200 OK" in seen
        assert not whole
    if fault == "truncated" and not stream:
        head, _, rest = seen.partition(b"\r\n\r\n")
        assert int(head.rsplit(b"content-length: ")[1]) > len(rest)


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_answers_come_under_status_200(api: ModelApi, stream: bool) -> None:
    api.set_script(simple_script(Step(text=TEXT, fault="malformed-json")))
    status, data, _ = post(api, PATHS[0], stream=stream)
    assert status == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(data)


def test_a_malformed_event_stands_between_good_ones(api: ModelApi) -> None:
    api.set_script(simple_script(Step(text=TEXT, fault="malformed-event", after_events=4)))
    _, data, _ = post(api, PATHS[0], stream=True)
    lines = [line[6:] for line in data.splitlines() if line.startswith("data: ")]
    bad = []
    for number, line in enumerate(lines):
        try:
            json.loads(line)
        except json.JSONDecodeError:
            bad.append(number)
    assert bad == [4]
    assert "message_stop" in lines[-1]


def test_an_error_event_ends_the_stream(api: ModelApi) -> None:
    api.set_script(simple_script(Step(text=TEXT, fault="error-event")))
    items = events(post(api, PATHS[0], stream=True)[1])
    assert items[-1]["error"]["type"] == "overloaded_error"
    assert len(items) == 4


def test_characters_are_split_across_chunks(api: ModelApi) -> None:
    api.set_script(simple_script(Step(fault="split-utf8")))
    seen, _ = raw(api, PATHS[0], stream=True, until_s=0.5)
    chunks = seen.partition(b"\r\n\r\n")[2].split(b"\r\n")[1::2]
    assert set(map(len, chunks)) <= {0, 1}
    assert "世界" in post(api, PATHS[0], stream=True)[1]
    assert "世界" in post(api, PATHS[0])[1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_slow_start_is_late_and_complete(api: ModelApi, stream: bool) -> None:
    api.set_script(simple_script(Step(text=TEXT, fault="slow-start", delay_ms=150)))
    begun = time.monotonic()
    assert post(api, PATHS[0], stream=stream)[0] == 200
    assert time.monotonic() - begun >= 0.15


def test_every_request_is_in_the_log_without_any_key(api: ModelApi, tmp_path: Path) -> None:
    line = connect(api)
    line.request("POST", PATHS[0], body(), headers={"x-api-key": "secret-key"})
    line.getresponse().read()
    line.close()
    text = (tmp_path / "log.jsonl").read_text()
    record = json.loads(text)
    assert (record["path"], record["model"], record["fault"]) == (PATHS[0], "claude-x", None)
    assert record["last"] == "MT-7f3a-2 please"
    assert "secret" not in text
    assert (record["status"], record["tools"]) == (200, [])
    assert record["output_tokens"] == len(TEXT) // 4


def test_the_log_says_what_an_answer_told_and_a_broken_one_told_nothing(
    api: ModelApi, tmp_path: Path
) -> None:
    tool = Tool("write_file", {"path": "a.py", "content": "x = 1\n"})
    api.set_script(simple_script(Step(tools=(tool,)), Step(tools=(tool,), fault="429")))
    post(api, PATHS[0])
    post(api, PATHS[0])
    told, refused = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
    assert (told["tools"][0]["path"], told["tools"][0]["size"]) == ("a.py", 6)
    assert len(told["tools"][0]["sha256"]) == 64
    assert told["input_tokens"] > 0
    assert (refused["status"], refused["input_tokens"], refused["tools"]) == (429, 0, [])


def test_one_connection_serves_many_requests_also_after_a_wait(api: ModelApi) -> None:
    api.set_script(simple_script(Step(delay_ms=20), Step(), Step(delay_ms=20)))
    line = connect(api)
    for _ in range(4):
        line.request("POST", PATHS[1], body(stream=True))
        assert b"[DONE]" in line.getresponse().read()
    line.close()


def test_requests_in_pieces_chunked_and_announced() -> None:
    parser = RequestParser()
    for byte in b"POST /x?a=b HTTP/1.1\r\nContent-Length: 3\r\n\r\nab":
        parser.feed(bytes((byte,)))
        assert parser.next() is None
    parser.feed(
        b"cPOST /y HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n"
    )
    first, second = parser.next(), parser.next()
    assert first is not None
    assert second is not None
    assert (first.path, first.body, second.body) == ("/x", b"abc", b"abcde")
    assert parser.next() is None
    parser.feed(b"POST /z HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n")
    assert (parser.wants_go_on(), parser.wants_go_on()) == (True, False)


def test_a_rule_that_answers_less_than_never_is_refused() -> None:
    with pytest.raises(ScriptError, match="times is not a whole number"):
        read_script({"version": 1, "rules": [{"times": -1, "steps": [{}]}]})


def test_a_script_with_mistakes_lists_all_of_them() -> None:
    wrong = {
        "version": 1,
        "extra": 1,
        "rules": [
            {"steps": [{"fault": "430"}, {"delay_ms": -1, "txt": ""}]},
            {"steps": []},
            7,
        ],
    }
    with pytest.raises(ScriptError) as caught:
        read_script(wrong)
    for part in ("'extra'", "'430'", "delay_ms", "'txt'", "rules[1].steps", "rules[2]"):
        assert part in str(caught.value)
    good = {"version": 1, "rules": [{"steps": [{"fault": name} for name in FAULTS]}]}
    assert [step.fault for step in read_script(good).rules[0].steps] == list(FAULTS)


def test_as_a_program_it_reads_its_script_again_when_it_changes(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"version": 1, "rules": [{"steps": [{"text": "first"}]}]}')
    argv = [sys.executable, "-m", "mutiny.doubles.model_api.api", "--script", str(script)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        try:
            for word in ("first", "second"):
                line = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
                line.request("POST", PATHS[0], body())
                assert said(PATHS[0], json.loads(line.getresponse().read())) == word
                line.close()
                new = '{"version": 1, "rules": [{"steps": [{"text": "second"}]}]}'
                (tmp_path / "new").write_text(new)
                (tmp_path / "new").replace(script)
        finally:
            process.terminate()
        assert process.wait(LIMIT_S) == 0


def test_a_tool_can_be_called_in_the_text() -> None:
    tool = Tool("file_write", {"path": "a.txt", "content": "é\n"})
    with ModelApi(simple_script(Step(text="Next.", tools=(tool,), in_text=True))) as made:
        _, plain, _ = post(made, PATHS[1])
        _, stream, _ = post(made, PATHS[1], stream=True)
    message = json.loads(plain)["choices"][0]["message"]
    assert "tool_calls" not in message
    assert '<arguments>{"path": "a.txt", "content": "é\\n"}</arguments>' in message["content"]
    assert streamed(PATHS[1], events(stream)) == message["content"]


def test_a_fault_over_an_answer_leaves_the_answer_for_the_next_one(tmp_path: Path) -> None:
    tool = Tool("file_write", {"path": "a.txt", "content": "x"})
    rules = (
        Rule((Step(fault="malformed-event", over=True),), times=1),
        Rule((Step(text="one two three four five", tools=(tool,)), Step(text="two"))),
    )
    log = tmp_path / "log.jsonl"
    with ModelApi(Script(rules), log=log) as made:
        broken_, _ = raw(made, PATHS[1], stream=True, until_s=1.0)
        _, plain, _ = post(made, PATHS[1])
    assert b'"content":"one' in broken_
    assert said(PATHS[1], json.loads(plain)) == "one two three four five"
    first, second = (json.loads(line) for line in log.read_text().splitlines())
    assert [first["fault"], first["tools"], second["meant"]] == ["malformed-event", [], []]
    assert first["meant"] == second["tools"]


def test_a_tool_over_an_answer_waits_for_one_that_calls_tools() -> None:
    odd = Tool("file_write", {"path": "odd.txt", "content": "x"})
    own = Tool("file_write", {"path": "a.txt", "content": "y"})
    rules = (
        Rule((Step(over=True, tools=(odd,)),), times=1),
        Rule((Step(text="talk"), Step(text="work", tools=(own,)))),
    )
    with ModelApi(Script(rules)) as made:
        answers = [json.loads(post(made, PATHS[1])[1]) for _ in range(3)]
    called = [len(one["choices"][0]["message"].get("tool_calls", ())) for one in answers]
    assert called == [0, 2, 1]


def test_what_was_said_already_decides_and_requests_are_kept(tmp_path: Path) -> None:
    rules = (Rule((Step(text="begin"),), without="part one"), Rule((Step(text="go on"),)))
    bodies = tmp_path / "bodies.jsonl"
    with ModelApi(Script(rules), bodies=bodies) as made:
        first = json.loads(post(made, PATHS[1])[1])
        told = [{"role": "system", "content": "part one is a file"}]
        same = json.loads(post(made, PATHS[1], messages=told)[1])
        talk = [*told, {"role": "user", "content": "part one is done"}]
        later = json.loads(post(made, PATHS[1], messages=talk)[1])
    answers = [said(PATHS[1], one) for one in (first, same, later)]
    assert answers == ["begin", "begin", "go on"]
    rows = [json.loads(line) for line in bodies.read_text().splitlines()]
    assert [row["number"] for row in rows] == [1, 2, 3]
    assert rows[2]["body"]["messages"] == talk


def test_what_nobody_is_to_look_at_is_told_of_a_request(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with ModelApi(Script((Rule((Step(text="so"),)),)), log=log) as made:
        for text in ("nothing", "it says mutiny-secret-4711 twice: mutiny-secret-4711"):
            post(made, PATHS[1], messages=[{"role": "user", "content": text}])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [row.get("marks") for row in rows] == [None, ["mutiny-secret-4711"]]


def test_a_script_says_true_or_false_and_nothing_else() -> None:
    with pytest.raises(ScriptError, match="in_text is neither true nor false"):
        read_script({"version": 1, "rules": [{"steps": [{"in_text": "yes"}]}]})
