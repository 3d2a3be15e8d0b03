# Third-party libraries: what the project above brings, else what the system has, else sources fetched at
# a pinned commit (needs network). INLAY_FETCHED names those that this build compiles, fetched by whom
# they may be. scripts/setup puts Highway into .deps/hwy, where a system package would be too old or
# shared only.
include(FetchContent)
include(InlayStaticAbseil)
list(PREPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/.deps/hwy)
set(INLAY_FETCHED "")

# Takes <target> where it is defined already, else finds <package> of at least <version>, which defines
# it, or fetches <repository> at the full commit hash <commit>. A hash names the content itself, so what
# arrives is what was pinned.
macro(inlay_dependency package target version repository commit)
  if(TARGET ${target})
    message(STATUS "Found ${package}: ${target} of the project above")
    get_target_property(imported ${target} IMPORTED)
    if(NOT imported)
      list(APPEND INLAY_FETCHED ${package})
    endif()
  else()
    find_package(${package} ${version} QUIET)
    if(${package}_FOUND)
      message(STATUS "Found ${package} ${${package}_VERSION}: ${${package}_DIR}")
    else()
      string(STRIP "${package} ${version}" wanted)
      message(STATUS "No ${wanted} here: fetching it (scripts/setup would install it)")
      FetchContent_Declare(${package} SYSTEM
        GIT_REPOSITORY https://github.com/${repository}.git GIT_TAG ${commit})
      FetchContent_MakeAvailable(${package})
      list(APPEND INLAY_FETCHED ${package})
    endif()
  endif()
endmacro()

# What a fetched dependency would build beside its library.
set(HWY_ENABLE_CONTRIB OFF CACHE BOOL "")
set(HWY_ENABLE_EXAMPLES OFF CACHE BOOL "")
set(HWY_ENABLE_INSTALL OFF CACHE BOOL "")
set(HWY_ENABLE_TESTS OFF CACHE BOOL "")
set(ABSL_PROPAGATE_CXX_STD ON CACHE BOOL "")
set(INSTALL_GTEST OFF CACHE BOOL "")
set(BENCHMARK_ENABLE_TESTING OFF CACHE BOOL "")
set(BENCHMARK_ENABLE_INSTALL OFF CACHE BOOL "")

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# The commits are those of the tags 1.2.0, 20240722.0, v2.4.2, v3.11.3, v1.15.2 and v1.9.1.
if(TARGET hwy AND NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS hwy)
endif()
inlay_dependency(hwy hwy::hwy 1.2 google/highway 457c891775a7397bdb0376bb1031e6e027af1c48)
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS hwy)
endif()
inlay_dependency(absl absl::status "" abseil/abseil-cpp 4447c7562e3bc702ade25105912dce503f0c4010)
inlay_dependency(CLI11 CLI11::CLI11 2.1 CLIUtils/CLI11 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9)
inlay_dependency(nlohmann_json nlohmann_json::nlohmann_json 3.11 nlohmann/json 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03)
# Asio and Beast: headers only. Boost has no single repository to fetch.
if(INLAY_SERVER)
  find_package(Boost 1.74 REQUIRED)
endif()
if(INLAY_MPI)
  if(NOT CMAKE_CROSSCOMPILING AND NOT INLAY_SANITIZE)
    set(MPI_CXX_SKIP_MPICXX ON)  # the C interface is used; that of C++ has left MPI
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  if(NOT MPI_CXX_FOUND)
    message(STATUS "No MPI for this build: no inlay-mpi")
    set(INLAY_MPI OFF)
  endif()
endif()
if(INLAY_BUILD_TESTS)
  inlay_dependency(GTest GTest::gtest 1.12 google/googletest b514bdc898e2951020cbdca1304b75f5950d1f59)
endif()
if(INLAY_BUILD_BENCH)
  inlay_dependency(benchmark benchmark::benchmark 1.7 google/benchmark c58e6d0710581e3a08d65c349664128a8d9a2461)
endif()

if(INLAY_STATIC_DEPS AND NOT "absl" IN_LIST INLAY_FETCHED)
  inlay_link_abseil_statically()
endif()
