# cmake -DROOT=<repository> -P CheckArrows.cmake: fails where an #include runs against the arrows of
# the house.
#
# Every quoted include is written from the repository's root or belongs to a third-party library, so
# its first folder says which way the arrow points. configs/ is stricter: nothing but itself and the
# standard library.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/ReportCheck.cmake)
set(sees_configs configs)
set(sees_ops ops)
set(sees_cache cache configs ops)
set(sees_io io ops)
set(sees_gemma_like gemma_like configs cache io ops)
set(sees_tools tools gemma_like configs cache io ops)
set(house configs ops cache io gemma_like tools)

set(wrong "")
set(files_seen 0)
foreach(folder IN LISTS house)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cc)
  foreach(file IN LISTS files)
    math(EXPR files_seen "${files_seen} + 1")
    # HWY_TARGET_INCLUDE names the file that Highway's foreach_target.h includes.
    file(STRINGS ${ROOT}/${file} lines REGEX
         "^[ \t]*#[ \t]*(include|define[ \t]+HWY_TARGET_INCLUDE)[ \t]*[<\"]")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "([<\"])([^>\"]*)[>\"]" _ "${line}")
      set(quote "${CMAKE_MATCH_1}")
      set(header "${CMAKE_MATCH_2}")
      string(REGEX MATCH "^[^/]*" first "${header}")
      if(header MATCHES "(^|/)[.][.]?/" OR (quote STREQUAL "\"" AND NOT header MATCHES "/"))
        list(APPEND wrong "${file} includes ${header}, which is not written from the repository's root")
      elseif(first IN_LIST house OR first MATCHES "^(tests|bench|examples)$")
        if(NOT first IN_LIST sees_${folder})
          list(APPEND wrong "${file} includes ${header}, but ${folder}/ does not see ${first}/")
        endif()
      elseif(folder STREQUAL "configs" AND NOT header MATCHES "^[a-z0-9_]+$")
        list(APPEND wrong "${file} includes ${header}, but configs/ sees the standard library only")
      endif()
    endforeach()
  endforeach()
endforeach()

inlay_report_check(${files_seen} "These includes run against the arrows of the house."
                   "files keep to the arrows" ${wrong})
