# cmake -DROOT=<repository> -P CheckFormat.cmake: fails where a room of the house calls absl::StrFormat
# or absl::StrAppendFormat, which end the process where memory runs out (base/out_of_memory.h), and not
# base/format.h.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/ReportCheck.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Arrows.cmake)

set(wrong "")
set(files_seen 0)
foreach(room IN LISTS house)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${room}/*.h ${ROOT}/${room}/*.cc)
  foreach(file IN LISTS files)
    math(EXPR files_seen "${files_seen} + 1")
    file(STRINGS ${ROOT}/${file} lines REGEX "absl::Str(Append)?Format\\(")
    if(lines)
      list(APPEND wrong "${file} calls absl::StrFormat or absl::StrAppendFormat")
    endif()
  endforeach()
endforeach()

inlay_report_check(${files_seen} "base/format.h has what to call instead." "files format without them"
                   ${wrong})
