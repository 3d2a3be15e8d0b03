# cmake -DCHECK= -DSCRATCH= -P red.cmake: each include below must be refused by CHECK in a house
# that is otherwise fine.
cmake_minimum_required(VERSION 3.25)

# Expects CHECK to pass in the house at SCRATCH (<says> empty) or to fail with <says>.
function(expect_check what says)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CHECK}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(says STREQUAL "")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "${what} was refused:\n${output}")
    endif()
  elseif(status EQUAL 0 OR NOT output MATCHES "${says}")
    message(SEND_ERROR "${what} was not refused with '${says}':\n${output}")
  endif()
endfunction()

# The same of a house where <folder>/x.h holds <line>.
function(expect folder line says)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/gemma_like/model.h
       "#include \"ops/norm.h\"\n#include \"absl/status/status.h\"\n")
  file(WRITE ${SCRATCH}/${folder}/x.h "${line}\n")
  expect_check("'${line}' in ${folder}/" "${says}")
endfunction()

# The same of a house where model.h includes x.h, x.cc includes y.h, and y.h holds <back>.
function(expect_circle back says)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/gemma_like/model.h "#include \"gemma_like/x.h\"\n")
  file(WRITE ${SCRATCH}/gemma_like/x.h "")
  file(WRITE ${SCRATCH}/gemma_like/x.cc "#include \"gemma_like/x.h\"\n#include \"gemma_like/y.h\"\n")
  file(WRITE ${SCRATCH}/gemma_like/y.h "${back}\n")
  expect_check("'${back}' in y.h" "${says}")
endfunction()

expect(ops "#include \"ops/norm.h\"" "")
expect(configs "#include <array>" "")
expect(cache "#include \"configs/config.h\"" "")
expect(tools "#include \"io/gguf.h\"" "")
expect(ops "#include \"configs/config.h\"" "ops/ does not see configs/")
expect(ops "#include \"cache/cache.h\"" "ops/ does not see cache/")
expect(ops "  #  include <io/gguf.h>" "ops/ does not see io/")
expect(ops "#define HWY_TARGET_INCLUDE \"gemma_like/x.cc\"" "ops/ does not see gemma_like/")
expect(configs "#include \"ops/norm.h\"" "configs/ does not see ops/")
expect(configs "#include \"absl/status/status.h\"" "standard library only")
expect(cache "#include \"io/gguf.h\"" "cache/ does not see io/")
expect(io "#include \"configs/config.h\"" "io/ does not see configs/")
expect(io "#include \"cache/cache.h\"" "io/ does not see cache/")
expect(gemma_like "#include \"tools/x.h\"" "gemma_like/ does not see tools/")
expect(tools "#include \"tests/x.h\"" "tools/ does not see tests/")
expect(ops "#include \"../io/gguf.h\"" "not written from the repository's root")
expect(gemma_like/layers "#include \"gemma_like/layers/mamba2.h\"" "another kind of layer")
expect(gemma_like/layers "#include \"cache/layers/mamba2-inl.h\"" "another kind of layer")
expect(gemma_like/layers "#include \"cache/layers/x.h\"" "")
expect(gemma_like/layers "#include \"gemma_like/layers/causal_conv.h\"" "")
expect(base "#include \"ops/norm.h\"" "base/ does not see ops/")
expect(ops "#include \"base/xxh64.h\"" "ops/ does not see base/")
# A circle that goes through a source; it may be found from any of its modules.
expect_circle("#include \"gemma_like/model.h\""
              "a circle: gemma_like/(model -> gemma_like/x|x -> gemma_like/y|y -> gemma_like/model) -> ")
expect_circle("#include \"ops/norm.h\"" "")
expect(ops "#include \"norm.h\"" "not written from the repository's root")
