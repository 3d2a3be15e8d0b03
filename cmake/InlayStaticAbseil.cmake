# Abseil's archives in the place of its shared libraries.
#
# Debian's abseil package describes the shared libraries but brings static archives too. Linking
# those leaves a program that starts without relocating some thirty libraries. They are no part of a
# shared library, as their code is for programs, so that no target which others may link is changed.
# Also installed with the package, for cmake/InlayModelBinary.cmake.

# inlay_find_archive(<shared library> <variable>): sets the variable to the archive beside it, or to the
# library itself where there is none.
function(inlay_find_archive library variable)
  string(REGEX REPLACE "[.]so[.0-9]*$" ".a" archive "${library}")
  if(NOT EXISTS "${archive}")
    set(archive ${library})
  endif()
  set(${variable} ${archive} PARENT_SCOPE)
endfunction()

# inlay_link_abseil_statically(): makes what find_package(absl) gave this folder, which is Inlay's, the
# archives.
function(inlay_link_abseil_statically)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER imported INCLUDE REGEX "^absl::")
  foreach(target IN LISTS imported)
    get_target_property(configs ${target} IMPORTED_CONFIGURATIONS)
    foreach(config IN LISTS configs)
      get_target_property(location ${target} IMPORTED_LOCATION_${config})
      inlay_find_archive("${location}" archive)
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${config} "${archive}")
    endforeach()
  endforeach()
endfunction()

# inlay_copy_with_archives(<imported target> <variable>): sets the variable to a copy of the target, made
# for this folder, and of all that it links of Inlay and abseil, in which abseil is the archives.
function(inlay_copy_with_archives target variable)
  string(REPLACE "::" "_" copy "inlay_static_${target}")
  set(${variable} ${copy} PARENT_SCOPE)
  if(TARGET ${copy})
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    add_library(${copy} INTERFACE IMPORTED)
  else()
    add_library(${copy} UNKNOWN IMPORTED)
  endif()
  set(properties INTERFACE_COMPILE_DEFINITIONS INTERFACE_COMPILE_FEATURES INTERFACE_COMPILE_OPTIONS
      INTERFACE_INCLUDE_DIRECTORIES INTERFACE_LINK_OPTIONS)
  get_target_property(configs ${target} IMPORTED_CONFIGURATIONS)
  if(configs)
    list(APPEND properties IMPORTED_CONFIGURATIONS)
    list(TRANSFORM configs PREPEND IMPORTED_LOCATION_ OUTPUT_VARIABLE locations)
    list(TRANSFORM configs PREPEND IMPORTED_LINK_INTERFACE_LANGUAGES_ OUTPUT_VARIABLE languages)
    list(APPEND properties ${locations} ${languages})
  endif()
  foreach(property IN LISTS properties)
    get_target_property(value ${target} ${property})
    if(value)
      if(property MATCHES "^IMPORTED_LOCATION" AND target MATCHES "^absl::")
        inlay_find_archive("${value}" value)
      endif()
      set_property(TARGET ${copy} PROPERTY ${property} "${value}")
    endif()
  endforeach()
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  if(NOT links)
    return()
  endif()
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${link}")
    if(library MATCHES "^(absl|inlay)::")
      inlay_copy_with_archives(${library} link)
    endif()
    set_property(TARGET ${copy} APPEND PROPERTY INTERFACE_LINK_LIBRARIES "${link}")
  endforeach()
endfunction()

# inlay_link_runtimes_statically(<program>): it then needs the C library alone, and runs where that is as
# old as here. Leaving out what nothing refers to, of the runtime above all, saves 0.7 of 4.6 MB.
function(inlay_link_runtimes_statically program)
  target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
endfunction()
