# cmake -DSOURCE=<repository> -DTYPE=<build type> -DHEADER=<file> -P WriteBuild.cmake: writes what
# `inlay --version` says of a build, the commit of the checkout SOURCE and the build type, into HEADER,
# which stays untouched where it says so already. A folder that is no checkout of its own has no commit.
cmake_minimum_required(VERSION 3.25)
set(parts "")
find_program(GIT git)
if(GIT)
  set(ENV{GIT_OPTIONAL_LOCKS} 0)  # a build writes nothing into .git
  # In a folder below the top of another project's checkout the prefix is not empty.
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-prefix
    RESULT_VARIABLE status OUTPUT_VARIABLE prefix ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(status EQUAL 0 AND prefix STREQUAL "")
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
      OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND parts ${commit})
  endif()
endif()
list(APPEND parts ${TYPE})
set(text "")
if(parts)
  list(JOIN parts ", " text)
  set(text " (${text})")
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define INLAY_BUILD \"${text}\"\n" @ONLY)
