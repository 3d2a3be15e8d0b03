# cmake -DROOT=<repository> -P CheckArrows.cmake: fails where an #include runs against the arrows of
# the house (Arrows.cmake), a kind of layer includes another, or files of a room include each other in a
# circle.
#
# A module is a header with the sources of its name: matmul.h, matmul-inl.h and matmul.cc. A circle is
# one of modules, so that a header does not hide behind its source what a reader has to know with it.
#
# Every quoted include is written from the repository's root or belongs to a third-party library, so
# its first folder says which way the arrow points. configs/ is stricter: nothing but itself and the
# standard library.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/ReportCheck.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Arrows.cmake)

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
      if(file MATCHES "/layers/([^./]*)[.][a-z]*$")
        set(layer ${CMAKE_MATCH_1})
        string(REGEX REPLACE "-inl$" "" layer "${layer}")
        if(header MATCHES "/layers/([^./]*)[.][a-z]*$")
          string(REGEX REPLACE "-inl$" "" other "${CMAKE_MATCH_1}")
          if(NOT layer STREQUAL other AND NOT other IN_LIST layer_parts
             AND NOT "${layer}:${other}" IN_LIST layers_of_layers)
            list(APPEND wrong "${file} includes ${header}, another kind of layer")
          endif()
        endif()
      endif()
      if(header MATCHES "(^|/)[.][.]?/" OR (quote STREQUAL "\"" AND NOT header MATCHES "/"))
        list(APPEND wrong "${file} includes ${header}, which is not written from the repository's root")
      elseif(first STREQUAL folder)
        string(REGEX REPLACE "(-inl)?[.](h|cc|inc)$" "" from "${file}")
        string(REGEX REPLACE "(-inl)?[.](h|cc|inc)$" "" to "${header}")
        if(NOT from STREQUAL to)
          list(APPEND modules ${from})
          list(APPEND includes_${from} ${to})
        endif()
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

# Modules that include none of those left are in no circle, nor is what only they include: what
# remains when all such are gone is one, or leads into one.
list(REMOVE_DUPLICATES modules)
set(left ${modules})
set(before "")
while(NOT "${left}" STREQUAL "${before}")
  set(before "${left}")
  foreach(module IN LISTS before)
    set(leads FALSE)
    foreach(included IN LISTS includes_${module})
      if(included IN_LIST left)
        set(leads TRUE)
        break()
      endif()
    endforeach()
    if(NOT leads)
      list(REMOVE_ITEM left ${module})
    endif()
  endforeach()
endwhile()
if(left)
  # Following any of them ends up in a circle.
  list(GET left 0 module)
  set(path "")
  while(NOT module IN_LIST path)
    list(APPEND path ${module})
    foreach(included IN LISTS includes_${module})
      if(included IN_LIST left)
        set(next ${included})
      endif()
    endforeach()
    set(module ${next})
  endwhile()
  list(FIND path ${module} start)
  list(SUBLIST path ${start} -1 circle)
  list(APPEND circle ${module})
  list(JOIN circle " -> " circle)
  list(APPEND wrong "a circle: ${circle}")
endif()

inlay_report_check(${files_seen} "These includes run against the arrows of the house."
                   "files keep to the arrows" ${wrong})
