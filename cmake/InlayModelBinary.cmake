# inlay_add_model_binary(NAME name CONFIG config [WEIGHTS file.gguf] [SERVER])
#
# A program like inlay in which one config of configs/config_list.txt is compiled in ("gemma_3_1b")
# and, with WEIGHTS, that model packed inside the program's own file, from which it is mapped: then
# `name "To be"` needs no other file. Here and, after find_package(inlay), in other projects. There
# too the program needs the C library alone: it holds the C++ runtime, and abseil's archives where they
# are installed. INLAY_STATIC_DEPS=OFF keeps the shared libraries; so it is by default where Inlay is a
# folder of another project, as the program then links what that project has. Without SERVER the commands
# serve, batch, replay and chat --server are left out with their code; pull and -hf always are, as the
# program has its model.
include(${CMAKE_CURRENT_LIST_DIR}/InlayConfigs.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/InlayStaticAbseil.cmake)

function(inlay_add_model_binary)
  cmake_parse_arguments(arg "SERVER" "NAME;CONFIG;WEIGHTS" "" ${ARGN})
  if(NOT arg_NAME OR NOT arg_CONFIG OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "inlay_add_model_binary needs NAME and CONFIG, may have WEIGHTS and SERVER, and no more")
  endif()
  if(arg_SERVER AND DEFINED INLAY_SERVER AND NOT INLAY_SERVER)
    message(FATAL_ERROR "inlay_add_model_binary(NAME ${arg_NAME} ... SERVER) needs INLAY_SERVER=ON")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.inlay)
  inlay_config_sources(sources ${folder} ${arg_CONFIG})
  file(WRITE ${folder}/main.cc.new
    "#include \"inlay/tools/cli.h\"\n\n"
    "int main(int argc, char** argv) { return inlay::RunCommandLine(argc, argv); }\n")
  file(COPY_FILE ${folder}/main.cc.new ${folder}/main.cc ONLY_IF_DIFFERENT)
  # The list of configs among these sources is found before that of the engine's library, whose own
  # configs then stay out.
  # Likewise, as those of the library bring the server and the code for hubs along.
  set(hooks no_hub_hooks.cc)
  if(NOT arg_SERVER)
    list(APPEND hooks no_server_hooks.cc)
  endif()
  set(tools ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tools)
  if(NOT EXISTS ${tools}/no_hub_hooks.cc)
    set(tools ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/sources/tools)  # installed
  endif()
  list(TRANSFORM hooks PREPEND ${tools}/)
  list(APPEND sources ${hooks})
  add_executable(${arg_NAME} ${folder}/main.cc ${sources})
  set(library inlay::tools)
  if(INLAY_STATIC_DEPS OR NOT DEFINED INLAY_STATIC_DEPS)
    inlay_link_runtimes_statically(${arg_NAME})
    get_target_property(installed inlay::tools IMPORTED)
    if(installed)
      inlay_copy_with_archives(inlay::tools library)
    endif()
  endif()
  target_link_libraries(${arg_NAME} PRIVATE ${library})
  if(NOT arg_WEIGHTS)
    return()
  endif()
  cmake_path(ABSOLUTE_PATH arg_WEIGHTS)
  set_property(TARGET ${arg_NAME} APPEND PROPERTY LINK_DEPENDS ${arg_WEIGHTS})
  # Stripping later would strip the model.
  target_link_options(${arg_NAME} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-s>)
  # A program does not replace itself.
  add_custom_command(TARGET ${arg_NAME} POST_BUILD
    COMMAND ${arg_NAME} bundle ${arg_WEIGHTS} --force -o $<TARGET_FILE:${arg_NAME}>.bundled
    COMMAND ${CMAKE_COMMAND} -E rename $<TARGET_FILE:${arg_NAME}>.bundled
            $<TARGET_FILE:${arg_NAME}>
    COMMENT "Bundling ${arg_WEIGHTS} with ${arg_NAME}" VERBATIM)
endfunction()
