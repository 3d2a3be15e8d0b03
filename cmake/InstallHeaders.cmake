# cmake --install runs this: copies the rooms' headers from SOURCE to INCLUDE (in the prefix, unless it
# is absolute), where they include each other as "inlay/ops/matmul/matmul.h", so that a project that
# uses them has only "inlay/" taken. They are made in STAGED first.
#
# Headers of kernels (-inl.h) are for the sources of ops/ alone and stay.
file(REMOVE_RECURSE ${STAGED})
cmake_path(ABSOLUTE_PATH INCLUDE BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
foreach(room IN LISTS ROOMS)
  file(GLOB_RECURSE headers RELATIVE ${SOURCE} ${SOURCE}/${room}/*.h)
  list(FILTER headers EXCLUDE REGEX "-inl[.]h$")
  foreach(header IN LISTS headers)
    file(READ ${SOURCE}/${header} text)
    list(JOIN ROOMS "|" rooms)
    string(REGEX REPLACE "#include \"((${rooms})/)" "#include \"inlay/\\1" text "${text}")
    set(to ${STAGED}/inlay/${header})
    if(header MATCHES "^gemma_like/(inlay|inlay_c)[.]h$")
      set(to ${STAGED}/inlay/${CMAKE_MATCH_1}.h)
    endif()
    file(WRITE "${to}" "${text}")
  endforeach()
endforeach()
# With the permissions of files that everybody may read, whatever the umask is, and in the manifest.
file(INSTALL DESTINATION "${INCLUDE}" TYPE DIRECTORY FILES ${STAGED}/inlay
  FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                        WORLD_EXECUTE)
