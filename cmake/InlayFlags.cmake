# Compile flags of this project's own code. Included after the dependencies, which keep their own.
if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(INLAY_CCACHE ccache)
  if(INLAY_CCACHE)
    # ccache caches what reads precompiled headers, as the tests do, only if it is told to, and if
    # g++ leaves their name in what it preprocesses.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros ${INLAY_CCACHE})
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      add_compile_options(-fpch-preprocess)
    endif()
  endif()
endif()

add_compile_options(-Wall -Wextra)
if(INLAY_WERROR)
  add_compile_options(-Werror)
endif()

# g++ throws away garbage from 128 MiB on: from 512 MiB on takes 5 to 10 % less processor time, and at
# most 1.1 GB for one file instead of 0.8. The code is the same.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=524288")
endif()

# The numerics contract: a fused multiply-add happens where the source says so and nowhere else.
add_compile_options(-ffp-contract=off)

# What makes a mistake that is still in there harder to use. The kernels (ops/) go without what costs
# time in their loops: they get views that were checked before.
if(NOT INLAY_SANITIZE)
  add_compile_options(-fstack-protector-strong)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
  include(CheckPIESupported)
  check_pie_supported()
endif()

if(INLAY_TARGETS STREQUAL "native")
  add_compile_options(-march=native)
  add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
  # Unless told so, Highway takes Zen 4 and 5 for AVX3_DL, which has no bf16 products. It does not do
  # so by itself because an Intel CPU might be slower as AVX3_ZEN4; those have half floats, too.
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -march=native)
  check_cxx_source_compiles(
    "#if !defined(__AVX512BF16__) || defined(__AVX512FP16__)\n#error\n#endif\nint main() {}"
    INLAY_NATIVE_IS_ZEN4)
  unset(CMAKE_REQUIRED_FLAGS)
  if(INLAY_NATIVE_IS_ZEN4)
    add_compile_definitions(HWY_WANT_AVX3_ZEN4)
  endif()
elseif(NOT INLAY_TARGETS STREQUAL "dispatch")
  message(FATAL_ERROR "INLAY_TARGETS is '${INLAY_TARGETS}'; it must be dispatch or native")
endif()

if(INLAY_SANITIZE)
  add_compile_options(-fsanitize=${INLAY_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${INLAY_SANITIZE})
  # Unrolled code is smaller where they check each step of it (ops/matmul/matmul_unpacked-inl.h).
  add_compile_definitions(INLAY_SANITIZED)
endif()

# Branches are counted everywhere, so that libFuzzer sees what an input reached.
if(INLAY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
