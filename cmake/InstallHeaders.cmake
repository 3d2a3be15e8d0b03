# cmake --install runs this: copies the rooms' headers from SOURCE to INCLUDE, where they include each
# other as "inlay/ops/matmul/matmul.h", so that a project that uses them has only "inlay/" taken.
#
# Headers of kernels (-inl.h) are for the sources of ops/ alone and stay.
foreach(room IN LISTS ROOMS)
  file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/${room}/*.h)
  list(FILTER headers EXCLUDE REGEX "-inl[.]h$")
  foreach(header IN LISTS headers)
    file(READ ${SOURCE}/${header} text)
    list(JOIN ROOMS "|" rooms)
    string(REGEX REPLACE "#include \"((${rooms})/)" "#include \"inlay/\\1" text "${text}")
    set(to ${INCLUDE}/inlay/${header})
    if(header MATCHES "^gemma_like/(inlay|inlay_c)[.]h$")
      set(to ${INCLUDE}/inlay/${CMAKE_MATCH_1}.h)
    endif()
    file(WRITE "${to}" "${text}")
  endforeach()
endforeach()
