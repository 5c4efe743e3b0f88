# One program for each tests/fuzz/fuzz_NAME.c. With HUNCH_FUZZ (clang) libFuzzer drives it, see scripts/fuzz.sh; without,
# fuzz_driver.c does, and the test fuzz_NAME runs the kept inputs and a fixed number of mutations of them.
set(HUNCH_FUZZ_CORPUS ${CMAKE_SOURCE_DIR}/tests/data/fuzz/corpus.tar.xz)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${HUNCH_FUZZ_CORPUS})
file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/fuzz-corpus)
file(ARCHIVE_EXTRACT INPUT ${HUNCH_FUZZ_CORPUS} DESTINATION ${CMAKE_BINARY_DIR}/fuzz-corpus)

set(files ${HUNCH_CMD}) # the command without its main, for targets that call it
list(FILTER files EXCLUDE REGEX "/main\\.c$")
add_library(fuzz_command OBJECT EXCLUDE_FROM_ALL ${files})
target_link_libraries(fuzz_command PRIVATE hunch_flags ${HUNCH_CMD_NEEDS})

if(HUNCH_FUZZ) # kernels see no file, and take minutes to compile when watched
  file(GLOB files src/ops/x86/*.c)
  set_property(SOURCE ${files} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=all)
endif()

add_custom_target(fuzz_all)
file(GLOB HUNCH_FUZZ_TARGETS CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
list(FILTER HUNCH_FUZZ_TARGETS EXCLUDE REGEX "/fuzz_driver\\.c$")
if(NOT TARGET hunch_serve)
  list(FILTER HUNCH_FUZZ_TARGETS EXCLUDE REGEX "/fuzz_body\\.c$")
endif()
set(HUNCH_ROUNDS_OF_fuzz_regex -rounds=300) # each compares many masks
set(HUNCH_ROUNDS_OF_fuzz_lines -rounds=2000)
foreach(f ${HUNCH_FUZZ_TARGETS})
  get_filename_component(name ${f} NAME_WE)
  string(REPLACE "fuzz_" "" short ${name})
  add_executable(${name} ${f} tests/fuzz/fuzz.c)
  target_include_directories(${name} PRIVATE src tests tests/fuzz)
  target_link_libraries(${name} PRIVATE hunch_lib)
  if(HUNCH_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE tests/fuzz/fuzz_driver.c)
    target_compile_options(${name} PRIVATE -Og) # as the tests are
    add_test(NAME ${name} COMMAND ${name} ${HUNCH_ROUNDS_OF_${name}} ${CMAKE_BINARY_DIR}/fuzz-corpus/${short})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS hostile)
  endif()
  add_dependencies(fuzz_all ${name})
endforeach()
foreach(name fuzz_prompts fuzz_lines)
  target_include_directories(${name} PRIVATE src/tools)
  target_link_libraries(${name} PRIVATE fuzz_command hunch_flags)
endforeach()
target_sources(fuzz_dart_trie PRIVATE src/train/data/dart_trie.c src/train/data/trie_build.c)
if(TARGET hunch_serve)
  target_link_libraries(fuzz_body PRIVATE hunch_serve)
endif()
