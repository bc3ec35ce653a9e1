"""The small shell in memory against the real bash: same output, same status, same files afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.adapters.local.environment import local_environment
from handrail.adapters.memory import memory_environment
from handrail.ports.commands import Command, Exit
from handrail.ports.environment import Environment

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="messages are those of Linux")]

SCRIPTS = [
    # words and quotes
    "echo a   b 'c   d' \"e   f\"",
    'echo \'it\'\\\'\'s\' "say \\"x\\"" a\\ b back\\\\slash \'$HOME\' "\\$HOME" "a\\nb"',
    "echo one # two\necho three#four",
    "echo a \\\n  b && \\\necho c",
    "echo '' \"\" x",
    'echo \'{"a":1,"b":2}\' "{x,y}" \\{p,q\\} {} { a }',
    "echo a=b x=1,2 a:b,c @ % ^ + = , . - /",
    "echo \"two\nlines\" 'and\nmore'",
    "echo a;echo b\n\n\necho c;",
    "echo 2 a2 > out; cat out",
    # variables
    "X=5; echo $X ${X}y \"$X$X\" '$X' $UNSET end",
    "X='a  b'; echo $X \"$X\" x${X}y",
    'X=1 Y=2; echo ${X:-d} ${Z:-d} "${Z:-e}"',
    "X=out; X=in bash -c 'echo $X'; echo $X; Y=5 true; echo [$Y]",
    "X=1; bash -c 'echo [$X]'; export X; bash -c 'echo [$X]'; unset X; bash -c 'echo [$X]'",
    "export A=1; B=2; env > e; cat e | wc -l > n; unset A; env > f; cat f | wc -l > m; rm e f n m",
    "false; echo $?; true; echo $?; missing-program 2> /dev/null; echo $?",
    'echo $# "$@" x',
    'echo \\$ $ a$ "$"',
    "set -u; echo ${X:-d}; echo $X; echo never",
    "set -u; echo $1; echo never",
    # conditions
    "true && echo a || echo b; false && echo c || echo d",
    "false || false || echo e; true || echo f && echo g",
    "missing-program || echo rescued",
    "set -e; echo a; false || true; false && true; echo b; false; echo never",
    "set -e; true | false | true; echo here; set +e; false; echo there",
    "set -o pipefail; false | true; echo $?; true | false; echo $?",
    "set -euo pipefail; false | cat; echo never",
    "exit 3",
    "false; exit",
    "exit 300",
    "exit abc",
    "echo before; exit 7; echo after",
    # pipes and redirections
    "echo x | cat | cat - | wc -l",
    "printf 'b\\na\\n' > f; cat < f; cat f f | head -n 3",
    "echo one > f; echo two >> f; echo three >> g; cat f g",
    "cat missing 2>&1 | wc -l; cat missing 2> err; cat err",
    "cat missing > both 2>&1; cat both; echo out 1>&2",
    "cat missing &> both; cat both",
    "echo hidden > /dev/null; cat < /dev/null; echo err >&2 2> /dev/null",
    "cat < missing; echo $?; echo x > missing/f; echo $?",
    "> empty; wc -c < empty",
    "cd d | echo x; echo a > here; cat here",
    "exit 4 | true; echo $?; true | exit 5; echo $?",
    # programs
    "echo -n a; echo -e 'x\\ty\\\\n'; echo -E '\\t'; echo -x -n; echo -ne 'z\\n'",
    "printf '%s-%d|' a 1 b 2; printf '%5d|%-5s|%05d\\n' 3 ab 7; printf '%%\\n'; printf '%b' 'a\\nb\\n'",
    "printf 'no %s\\n'; printf '%s %s\\n' a b c",
    "printf '\\101\\x42\\n'; printf '%s\\n'; printf 'plain\\n' ignored; printf '%i\\n' 12",
    "true; echo $?; false; echo $?; : anything; echo $?",
    "seq=1; printf '1\\n2\\n3\\n4\\n' > n; head -n 2 n; tail -n 2 n; head -1 n; tail -n1 n; head -n 9 n | wc -l",
    "head missing; tail missing; wc missing; echo $?",
    "printf 'a b\\nc' > f; wc f; wc -l f; wc -w < f; wc -c f",
    "mkdir a a/b; mkdir -p c/d/e; ls; ls a c; ls -a c; mkdir a; mkdir x/y; echo $?",
    "touch f .g; ls; ls -a; ls -A; ls f; ls f d; ls missing; echo $?",
    "touch a b; rm a; rm missing; rm -f missing; rm d; rm -r d; ls",
    "mkdir -p a/b; touch a/b/c a/d; rm -rf a missing; ls",
    "echo x > a; cp a b; cat b; cp a d; ls d; cp missing b; cp -r d e; ls e; cp d f; echo $?",
    "echo x > a; echo y > b; mv a b; cat b; mv b d; ls d; mv missing x; echo $?; mv d e; ls",
    "touch d/x missing/y; echo $?; ls d",
    "echo x > a; ln -s a l; cat l; ln -s a l; echo $?; ln -sf d l; ls l; ln -sfn a l; cat l; ln -s b d; ls d",
    "ln -s missing l; cat l; rm l; ln -s d/in; cat in; ln -s x missing/l; ln; echo $?; cd d; ln -s in new; cat new",
    "mkdir e; echo x > e/f; ln -s f e/l; cp -r e g; rm e/f; cat g/l; cp -r e/l h; ls; rm e/l h",
    "mkdir d/e; touch d/e/f; cp -r d d/e; echo $?; cp -r d d/new; echo $?",
    "mkdir d/e; touch d/e/f; ln -s d/e l; cp -r d l; echo $?; ls d/e d/e/d",
    "mkdir e; touch e/f; ln -s f e/l; mv e g; cat g/l; mv g/l l; rm l; ls g",
    "touch a b c e; chmod 600 a; chmod 755 b c; chmod 0640 e; chmod 0750 d; chmod 8 a; echo $?; chmod u+z a; echo $?",
    "touch a b c; chmod u+x a; chmod go= b; chmod a-w,u+w c; chmod =r d/in; chmod u=rwx,go+x d; chmod +x d/script",
    "touch a b; chmod 777 a b; chmod g-x,o-rw a; chmod a=r,u+w b; ln -s a l; chmod 600 l; chmod -w b",
    "chmod -R go-rwX,u+X d; chmod 600 missing; echo $?; chmod; chmod 600; echo $?",
    "cp; mv x; mkdir; rm; sleep; echo $?",
    "sleep 0; sleep x; echo $?",
    "env -i A=1 B='2 3'; env -u HOME X=1 printf '%s\\n' done",
    "cat - < d/in | cat -; cat d/in - < /dev/null",
    "wc -z; ls -%; head -%; tail -%; echo $?",
    # the shell itself
    "missing-program; echo $?",
    "./missing-program; echo $?",
    "echo 'echo script $1 $#' > s; bash s x y; ./s; echo $?; sh s",
    "cd d; echo x > y; cd ..; cat d/y; cd missing; echo $?; cd d/in; echo $?; cd - > /dev/null; cd; echo $?",
    ". d/script; echo $V; source missing; echo $?; eval 'echo ev$V'",
    "exec echo replaced; echo never",
    "bash -c 'echo in $0 $1' name arg; bash -c 'exit 9'; echo $?; bash -e -c 'false; echo never'; echo $?",
    "echo 'echo from stdin $1' | bash -s arg; echo 'echo plain' | bash",
    "kill 99999999; echo $?",
    "kill -9 $$",
    # names of files
    "touch a1 a2 .a3 'b b'; echo a* '*' \"a*\" *z \\*; echo [ab]*; echo d/*; echo ?1",
    "touch 'x*y' xzy; echo 'x*'y x\\*y x*y",
    "P='a*'; touch a1 a2; echo $P \"$P\"",
    "echo ~/x '~' a~ ~",
    # what is started in the background
    "echo late & wait; echo done",
    # no script at all
    "",
    "   # only a comment",
    ";",
    "echo a && ",
    "| cat",
    "echo 'open",
    "echo > ",
]


async def run(env: Environment, script: str) -> tuple[int | None, int | None, str]:
    output = bytearray()

    async def sink(data: bytes) -> None:
        output.extend(data)

    variables = {"HOME": "/tmp", "LC_ALL": "C"}
    ended: Exit = await env.commands.run(Command(("bash", "-c", script), env.cwd, variables), sink)
    return ended.code, ended.signal, output.decode()


async def snapshot(env: Environment, path: str) -> dict[str, bytes]:
    """Return all that is below a directory, by its path in it: modes, contents and targets of links."""
    found: dict[str, bytes] = {}
    for entry in await env.files.list_dir(path):
        below = f"{path}/{entry.name}"
        if entry.kind == "directory":
            found[entry.name] = oct((await env.files.stat(below)).mode).encode()
            found |= {f"{entry.name}/{name}": data for name, data in (await snapshot(env, below)).items()}
        elif entry.kind == "symlink":
            found[entry.name] = b"-> " + (await env.files.read_link(below)).encode()
        else:
            content = await env.files.read(below)
            found[entry.name] = oct(content.stat.mode).encode() + b" " + content.data
    return found


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_script_does_the_same(script: str, tmp_path: Path) -> None:
    start = {"d/in": "content\n", "d/script": "V=set\necho sourced\n"}
    (tmp_path / "d").mkdir()
    for name, text in start.items():
        (tmp_path / name).write_text(text)
    async with local_environment(tmp_path) as real, memory_environment(start) as memory:
        expected, found = await run(real, script), await run(memory, script)
        assert comparable(found) == comparable(expected)
        assert (await snapshot(memory, memory.cwd)) == (await snapshot(real, str(tmp_path)))


def comparable(result: tuple[int | None, int | None, str]) -> tuple[int | None, int | None, str]:
    """Leave out what is a hint for people, and the wording of messages about syntax."""
    code, signal, output = result
    lines = [line for line in output.splitlines(keepends=True) if not line.startswith(("Try '", "bash: -c: line "))]
    return code, signal, "".join(lines)
