"""`mutiny serve` and the pages of runs from the outside: real processes, real sockets, bad input."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

from mutiny_command import COMMAND, run_mutiny
from run_folders import written, written_replay
from schemas import problems
from served import LIMIT_S, Served, serving


def status(server: Served, path: str, **headers: str) -> int:
    """Of a request exactly as it is written: no client puts its address right."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=LIMIT_S)
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_prints_one_line_serves_and_ends_when_asked(tmp_path: Path) -> None:
    written(tmp_path, "run_1")
    with serving(tmp_path) as server:
        token = server.address.partition("token=")[2]
        cookie = f"mutiny_{server.port}={token}"
        assert status(server, "/") == 403
        wrong = token[:-1] + ("y" if token.endswith("x") else "x")
        assert status(server, f"/?token={wrong}") == 403
        assert status(server, f"/?token={token}") == 303
        assert status(server, "/run/run_1", cookie=cookie) == 200
        assert status(server, "/run/run_1", cookie=cookie, host="evil.example") == 421
        for way in (
            "/files/../../etc/passwd",
            "/files/run_1/%2e%2e/%2e%2e/etc/passwd",
            "/run/../..",
        ):
            assert status(server, way, cookie=cookie) == 404, way


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run_mutiny(tmp_path, "serve", "--no-open", "--port", str(port))
    assert ran.code == 2
    assert ran.stderr == f"mutiny: port {port}: Address already in use; give another one\n"


def test_a_folder_that_is_not_there_is_a_typing_error(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "serve", "--no-open", "--runs", "choas_runs")
    assert ran.code == 2
    assert ran.stderr.startswith("mutiny: choas_runs: there is no such directory")
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Without the packages of the extra: nothing is served, nothing is written."""
    hide = "import sys; sys.modules['starlette'] = None"
    hidden = f"{hide}; from mutiny.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "serve"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 3
    assert "pip install 'mutiny[serve]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_program_hears_the_address_in_the_one_form(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [COMMAND, "serve", "--json", "--port", "0", "--runs", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        text = ""
        while not text.endswith("}\n") or text.count("{") != text.count("}"):
            text += process.stdout.readline()
        document = json.loads(text)
    finally:
        process.terminate()
        assert process.wait(LIMIT_S) == 0
        process.stdout.close()
    assert problems("output", document) == []
    assert document["verb"] == "serve"
    assert document["address"].startswith("http://127.0.0.1:")


def test_a_run_as_a_page_and_all_runs_as_a_site(tmp_path: Path) -> None:
    run = written(tmp_path / "chaos_runs", "run_1", "bug")
    written_replay(run)
    page = run_mutiny(tmp_path, "report", "chaos_runs/run_1", "--html")
    assert (page.code, page.stdout) == (1, "Page: chaos_runs/run_1/report.html\n")
    assert "What broke" in (run / "report.html").read_text()
    told = run_mutiny(tmp_path, "report", "chaos_runs/run_1", "--html", "--json")
    assert problems("output", json.loads(told.stdout)) == []
    site = run_mutiny(tmp_path, "report", "--site", "public", "--json")
    assert problems("output", json.loads(site.stdout)) == []
    assert json.loads(site.stdout)["pages"] == 1
    assert (tmp_path / "public" / "runs" / "run_1" / "index.html").is_file()
    nowhere = run_mutiny(tmp_path, "report", "nowhere", "--html")
    assert nowhere.code == 2
    assert "no run lies there" in nowhere.stderr
