#!/usr/bin/env python3
"""red.py BUILD_FOLDER NINJA NOTICE: whether check.py sees a work that NOTICE lacks, and one that it names for nothing."""

import pathlib
import subprocess
import sys
import tempfile

build, ninja, notice = sys.argv[1:]
text = pathlib.Path(notice).read_text(encoding='utf-8')
for changed, says in [(text.replace('\nBoost\n', '\nB\n', 1), 'does not name Boost'),
                      (text + '=' * 98 + '\nzlib\n', 'names zlib')]:
    with tempfile.NamedTemporaryFile('w', encoding='utf-8') as file:
        file.write(changed)
        file.flush()
        check = pathlib.Path(__file__).with_name('check.py')
        result = subprocess.run([sys.executable, check, build, ninja, file.name], capture_output=True, text=True)
    if result.returncode != 1 or says not in result.stdout:
        sys.exit(f'check.py takes a NOTICE that it should refuse with "{says}":\n{result.stdout}{result.stderr}')
