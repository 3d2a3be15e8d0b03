# cmake -DSCRIPT=<cmake/WriteBuild.cmake> -DSCRATCH=<folder> -DGIT=<program> -P write_build.cmake: what
# SCRIPT says of a checkout, of one with changes and of folders that are none, and that it leaves a
# header alone that is right.
cmake_minimum_required(VERSION 3.25)
set(checkout "${SCRATCH}/a checkout")
set(header "${SCRATCH}/build.h")
unset(ENV{GIT_DIR})
unset(ENV{GIT_WORK_TREE})
unset(ENV{GIT_INDEX_FILE})
set(ENV{GIT_CONFIG_GLOBAL} /dev/null)
set(ENV{GIT_CEILING_DIRECTORIES} ${SCRATCH})

function(git)
  execute_process(COMMAND ${GIT} -c user.name=tests -c user.email=tests@localhost ${ARGN}
    WORKING_DIRECTORY ${checkout} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

# The header of <source> and <type> must be the definition of a text that matches <regex>.
function(expect source type regex)
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${source} -DTYPE=${type} -DHEADER=${header} -P ${SCRIPT}
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${header} text)
  if(NOT text MATCHES "^#define INLAY_BUILD \"${regex}\"\n$")
    message(SEND_ERROR "${source}, ${type}: ${text} does not match ${regex}")
  endif()
endfunction()

set(commit "[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]")
file(REMOVE_RECURSE ${SCRATCH})
file(WRITE ${checkout}/below/file "one\n")
expect(${checkout} Release " \\(Release\\)")
expect(${checkout} "" "")

git(init -q)
git(add .)
git(commit -q -m one)
git(tag -a -m one v1)  # a tag takes no commit's place
expect(${checkout} Release " \\(${commit}, Release\\)")
expect(${checkout} "" " \\(${commit}\\)")
expect(${checkout}/below Release " \\(Release\\)")

expect(${checkout} Debug " \\(${commit}, Debug\\)")
execute_process(COMMAND touch -d 2001-02-03 ${header} COMMAND_ERROR_IS_FATAL ANY)
expect(${checkout} Debug " \\(${commit}, Debug\\)")
file(TIMESTAMP ${header} year %Y)
if(NOT year EQUAL 2001)
  message(SEND_ERROR "a header that is right was written again")
endif()

file(WRITE ${checkout}/below/file "two\n")
expect(${checkout} Debug " \\(${commit}-dirty, Debug\\)")
git(commit -q -a -m two)
expect(${checkout} Debug " \\(${commit}, Debug\\)")
