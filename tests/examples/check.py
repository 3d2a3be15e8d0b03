#!/usr/bin/env python3
"""check.py PROGRAM LIBRARY MODEL COMMAND...: whether an example, which COMMAND runs with the model's path and a prompt as further
arguments, prints the answers that `PROGRAM generate` gives for the same prompt and seeds.

The example generates 40 tokens with seed 0, then 40 from a fork with seed 1, and, after "the first again", the first ones once more.
"""
import json
import os
import pathlib
import subprocess
import sys

program, library, model, *command = sys.argv[1:]
prompts = ['ROMEO:\n', 'What is Grüß?', 'A']  # the last is of two tokens, BOS and itself


def answer(prompt, seed):
    result = subprocess.run([program, 'generate', '-m', model, '-p', prompt, '-n', '40', '-s', str(seed), '-o', 'json'],
                            check=True, capture_output=True, text=True)
    return json.loads(result.stdout)['text']


def run(*arguments):
    environment = {**os.environ, 'INLAY_LIBRARY': library, 'LD_LIBRARY_PATH': str(pathlib.Path(library).parent)}
    return subprocess.run([*command, *arguments], env=environment, capture_output=True)


for prompt in prompts:
    first, second = answer(prompt, 0), answer(prompt, 1)
    assert first != second, first
    result = run(model, prompt)
    said = result.stdout.decode('utf-8')
    wanted = f'{first}\n--- or ---\n{second}\n--- the first again ---\n{first}\n'
    if result.returncode != 0 or said != wanted:
        sys.exit(f'{command} says\n{said}\n{result.stderr.decode()}instead of\n{wanted}')
refused = run('no/such/model')
if refused.returncode == 0 or b'no/such/model cannot be opened' not in refused.stderr:
    sys.exit(f'{command} does not say why it cannot load a model: {refused}')
