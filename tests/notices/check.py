#!/usr/bin/env python3
"""check.py BUILD_FOLDER NINJA NOTICE: whether NOTICE names each work that the program `inlay` contains, and no other.

What a program contains is what its link line names and what its objects include, both as Ninja knows them. Headers of a library that
is only loaded while the program runs count as nothing.
"""

import pathlib
import re
import subprocess
import sys

# A file outside of the project: the work that it brings in, by the first expression that matches.
SYSTEM = None  # the C library and the kernel's interface, which are not contained
LOADED = None  # declarations and constants alone: io/download/ and tools/line_editor.cc open these libraries by dlopen
WORKS = [
    (r'/hwy/', 'Highway'),
    (r'/libhwy\.', 'Highway'),
    (r'/absl/', 'Abseil'),
    (r'/libabsl_\w+\.a$', 'Abseil'),
    (r'/CLI/', 'CLI11'),
    (r'/nlohmann/', 'JSON for Modern C++'),
    (r'/hiredis/', 'hiredis'),
    (r'/libhiredis\.a$', 'hiredis'),
    (r'/boost/', 'Boost'),
    (r'/c\+\+/', 'GCC runtime libraries'),
    (r'/lib/gcc/', 'GCC runtime libraries'),
    (r'^-static-lib(stdc\+\+|gcc)$', 'GCC runtime libraries'),
    (r'^-latomic$', 'GCC runtime libraries'),
    (r'/include/(\w+-linux-gnu/)?(curl|openssl)/', LOADED),
    (r'/include/histedit\.h$', LOADED),
    (r'^/usr/include/(\w+-linux-gnu/)?(asm|asm-generic|arpa|bits|gnu|linux|net|netinet|rpc|sys)/', SYSTEM),
    (r'^/usr/include/[\w-]+\.h$', SYSTEM),
    (r'^-l(dl|m|c|pthread)$', SYSTEM),
]
# Works of which parts stand in the project's own sources.
IN_SOURCES = {'ggml': 'ops/quant/grids.cc', 'Unicode data': 'io/tokenizer/unicode_classes.inc'}


def ninja(build, program, *arguments):
    return subprocess.run([program, '-C', build, *arguments], check=True, capture_output=True, text=True).stdout


def included_files(build, program):
    """The files outside of the project's folder that the program's objects include."""
    objects = set(ninja(build, program, '-t', 'inputs', 'inlay').split('\n'))
    found, wanted = set(), False
    for line in ninja(build, program, '-t', 'deps').split('\n'):
        if line and not line.startswith(' '):
            wanted = line.split(':')[0] in objects
        elif line.strip() and wanted:
            found.add(line.strip())
    return found


def linked_files(build, program):
    """The libraries of the program's link line, those of the project aside."""
    command = ninja(build, program, '-t', 'commands', 'inlay').rstrip('\n').split('\n')[-1]
    words = [word for word in command.split() if re.search(r'\.a$|\.so[.\d]*$|^-l|^-static-lib', word)]
    if '-static-libstdc++' not in words:
        sys.exit('check.py: this is not the link line of a program that is linked statically: ' + command)
    return {word for word in words if not re.search(r'(^|/)libinlay_\w+\.a$', word)}


def works_of(files, root):
    """The works that these files belong to, and the files that belong to none."""
    works, unknown = set(), []
    for file in sorted(files):
        outside = file.startswith('-') or not (root / file).resolve().is_relative_to(root) or '/.deps/' in file
        if not outside:
            continue
        for expression, work in WORKS:
            if re.search(expression, file):
                works.add(work)
                break
        else:
            unknown.append(file)
    return works - {None}, unknown


def main():
    build, program, notice = sys.argv[1:]
    source = pathlib.Path(__file__).resolve().parents[2]
    included, linked = included_files(build, program), linked_files(build, program)
    if len(included) < 1000:
        sys.exit(f'check.py: {len(included)} files are included, which cannot be all')
    files = {str((pathlib.Path(build) / file).resolve()) if not file.startswith(('/', '-')) else file
             for file in included | linked}
    contained, unknown = works_of(files, source)
    for work, file in IN_SOURCES.items():
        if (source / file).exists():
            contained.add(work)
    named = set(re.findall(r'^={90,}\n(.+)$', pathlib.Path(notice).read_text(encoding='utf-8'), re.MULTILINE))
    for file in unknown:
        print(f'{file} belongs to no work that this check knows')
    for work in sorted(contained - named):
        print(f'{notice} does not name {work}')
    for work in sorted(named - contained):
        print(f'{notice} names {work}, which the program does not contain')
    if unknown or contained != named:
        sys.exit(1)
    print(f'{len(included)} included files and {len(linked)} libraries are of the {len(named)} works of {notice}')


main()
