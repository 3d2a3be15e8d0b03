# cmake -DROOT=<repository> -DBUILT=<file> -P CheckSources.cmake: fails where CMake or Bazel does not
# build a source file.
#
# CMake's lists are explicit: each .cc must be among the paths in BUILT. Bazel's packages take files
# by pattern: each folder with sources must be a package, or its room one that takes folders, and what
# a BUILD.bazel names, mostly to leave it out, must be there.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/ReportCheck.cmake)
set(cmake_only tests/hardening)

file(STRINGS ${BUILT} built)
set(wrong "")
set(files_seen 0)
include(${CMAKE_CURRENT_LIST_DIR}/Arrows.cmake)
foreach(top ${house} tests bench)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.cc)
  list(FILTER files EXCLUDE REGEX "^tests/compile_fail/")
  foreach(file IN LISTS files)
    math(EXPR files_seen "${files_seen} + 1")
    if(NOT file IN_LIST built)
      list(APPEND wrong "${file} is in no CMakeLists.txt")
    endif()
    cmake_path(GET file PARENT_PATH folder)
    # The room's package may take the files of its folders too.
    set(in_package FALSE)
    if(EXISTS ${ROOT}/${folder}/BUILD.bazel OR folder IN_LIST cmake_only)
      set(in_package TRUE)
    elseif(EXISTS ${ROOT}/${top}/BUILD.bazel)
      file(READ ${ROOT}/${top}/BUILD.bazel text)
      if(text MATCHES "[*][*]/[*][.]cc")
        set(in_package TRUE)
      endif()
    endif()
    if(NOT in_package)
      list(APPEND wrong "${file} is in no package of Bazel's")
    endif()
  endforeach()
  file(GLOB_RECURSE packages RELATIVE ${ROOT} ${ROOT}/${top}/BUILD.bazel)
  foreach(package IN LISTS packages)
    cmake_path(GET package PARENT_PATH folder)
    file(READ ${ROOT}/${package} text)
    string(REGEX MATCHALL "\"[a-z0-9][a-z0-9_/]*[.](cc|h|inc)\"" names "${text}")
    list(TRANSFORM names REPLACE "\"" "")
    foreach(name IN LISTS names)
      if(NOT EXISTS ${ROOT}/${folder}/${name})
        list(APPEND wrong "${package} names ${name}, which is not there")
      endif()
    endforeach()
  endforeach()
endforeach()

inlay_report_check(${files_seen} "The lists of sources and the folders differ."
                   "sources are built" ${wrong})
