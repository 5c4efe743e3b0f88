# Unit tests stand beside their code (src/**/x_test.c), what crosses modules under tests/ (tests/**/x_test.c).
# A test whose name ends in _long_test runs under `make test-long` only (label "long").
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
# The real chat templates and their cases: 640 KB of text, 42 KB packed.
file(ARCHIVE_EXTRACT INPUT ${CMAKE_SOURCE_DIR}/tests/data/templates/real.tar.xz DESTINATION ${CMAKE_BINARY_DIR}/templates)
# Vocabularies of real tokenizers and what they make of texts: 29 MB, 5 MB packed.
foreach(f vocabularies pipelines)
  file(ARCHIVE_EXTRACT INPUT ${CMAKE_SOURCE_DIR}/tests/data/tokenizers/${f}.tar.xz DESTINATION ${CMAKE_BINARY_DIR}/tokenizers)
endforeach()
# Shell, where that is what looks at the thing as its user does; 77: what it needs is not there.
set(HUNCH_BINARIES $<TARGET_FILE:hunch> $<TARGET_FILE:hunch-train> $<TARGET_FILE:hunch_lib>)
if(TARGET hunch_shared)
  list(APPEND HUNCH_BINARIES $<TARGET_FILE:hunch_shared>)
endif()
add_test(NAME no_network_test COMMAND ${CMAKE_SOURCE_DIR}/tests/no_network_test.sh ${HUNCH_BINARIES})
add_test(NAME demo_test COMMAND ${CMAKE_SOURCE_DIR}/tests/demo_test.sh $<TARGET_FILE:hunch>
  ${CMAKE_SOURCE_DIR}/tests/data/models/stories260K/stories260K.f32.gguf)
set_tests_properties(no_network_test demo_test PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
  ENVIRONMENT HUNCH_CACHE=${CMAKE_BINARY_DIR}/cache)
# Over two ranks of this machine, and for `make test-long` the grid: more ranks, every family. Not sanitized: MPI itself is not.
if(TARGET hunch_mpi AND NOT HUNCH_SANITIZE)
  set(machines_test ${CMAKE_SOURCE_DIR}/tests/machines_test.sh $<TARGET_FILE:hunch> $<TARGET_FILE:hunch_mpi> ${CMAKE_SOURCE_DIR}/tests/data)
  add_test(NAME machines_test COMMAND ${machines_test})
  add_test(NAME machines_long_test COMMAND ${machines_test} 2 3 4)
  set_tests_properties(machines_test machines_long_test PROPERTIES TIMEOUT 3600 SKIP_RETURN_CODE 77
    ENVIRONMENT HUNCH_CACHE=${CMAKE_BINARY_DIR}/cache)
  set_tests_properties(machines_long_test PROPERTIES LABELS long)
endif()
# What is tested is the library as it is built. Most tests compute little themselves, and take longer to optimise than to run.
set(HUNCH_TESTS_THAT_COMPUTE "^(check_linear|dart_trie|product|trie_build)_test$")
# The vectorizer ends in an error of its own in loops of fmax, which tests alone have.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
  set(HUNCH_TEST_OPTIONS -fno-tree-vectorize)
endif()
file(GLOB_RECURSE HUNCH_CROSS_TESTS CONFIGURE_DEPENDS tests/*_test.c)
# Tests of whole passes. Sanitized they run over a backend whose memory is out of the host's reach (tests/hostile_backend.c).
set(HUNCH_APART_TESTS equality_test equality_heads_test bits_test hybrid_grid_test fault_round_test draft_rows_test head_rows_test block_rows_test
  borrowed_rows_test output_rows_test mixed_passes_test drafter_model_test feed_test mapped_test domino_pool_test head_batch_test
  delta_state_test golden_heads_test smollm2_test certainty_test layer_sets_test)
function(hunch_apart name)
  target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/hostile_backend.c)
  target_link_options(${name} PRIVATE -Wl,--wrap=hn_cpu_backend_open)
endfunction()
# What reads requests, compiled once more so that each basic block calls what counts it (serve_steps_test.c), beside the rest as it is.
function(hunch_counted name)
  set(part "/src/(base|text|grammar|calls)/")
  set(f ${HUNCH_LIB} ${HUNCH_SERVE})
  list(FILTER f INCLUDE REGEX "${part}|/src/server/")
  add_library(hunch_counted OBJECT EXCLUDE_FROM_ALL ${f})
  target_include_directories(hunch_counted PUBLIC include PRIVATE src)
  target_compile_options(hunch_counted PRIVATE -fsanitize-coverage=trace-pc)
  target_link_libraries(hunch_counted PUBLIC ${HUNCH_NEEDS} PkgConfig::MICROHTTPD)
  target_sources(${name} PRIVATE $<FILTER:$<TARGET_OBJECTS:hunch_objects>,EXCLUDE,${part}>)
  target_link_libraries(${name} PRIVATE hunch_counted)
endfunction()
foreach(f ${HUNCH_TESTS} ${HUNCH_CROSS_TESTS})
  get_filename_component(name ${f} NAME_WE)
  # These read the source and the pages, run the help of each command, measure, or count drawn tokens, simulate rounds, compare
  # trainings and end them, in code that other tests run sanitized: the trainer's in double precision as golden_train_* and learn_test do in
  # single. Nobody runs the long ones so.
  if(HUNCH_SANITIZE MATCHES "address" AND name MATCHES "_(double|long)_test$|\
^(documents|layers|promises|command_bench|command_help|exact_dist|heads_dist|match_dist|on_policy|rules_dist|shift|train_kill|auto_trees|\
controller|controller_levels|controller_select|controller_tree|serve_steps)_test$")
    continue()
  endif()
  if(f MATCHES "/src/server/|/request_parameters_test" AND NOT TARGET hunch_serve)
    continue()
  endif()
  if(f MATCHES "/tests/vulkan/" AND (HUNCH_SANITIZE OR NOT HUNCH_HAS_VULKAN))
    continue()
  endif()
  add_executable(${name} ${f})
  target_include_directories(${name} PRIVATE src tests)
  target_compile_options(${name} PRIVATE ${HUNCH_TEST_OPTIONS})
  if(NOT name MATCHES "${HUNCH_TESTS_THAT_COMPUTE}")
    target_compile_options(${name} PRIVATE -Og)
  endif()
  target_compile_definitions(${name} PRIVATE HUNCH_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data" HUNCH_COMMAND="$<TARGET_FILE_DIR:${name}>/hunch"
    HUNCH_TEST_TEMPLATES="${CMAKE_BINARY_DIR}/templates" HUNCH_TEST_TOKENIZERS="${CMAKE_BINARY_DIR}/tokenizers")
  if(f MATCHES "/src/train/.*_double_test\\.c$")
    target_link_libraries(${name} PRIVATE hunch_train_double)
  elseif(f MATCHES "/src/train/|/golden_train_")
    target_link_libraries(${name} PRIVATE hunch_train)
  endif()
  if(name STREQUAL "serve_steps_test")
    hunch_counted(${name})
  elseif(f MATCHES "/src/server/|/request_parameters_test")
    target_link_libraries(${name} PRIVATE hunch_serve)
  endif()
  if(NOT name STREQUAL "serve_steps_test")
    target_link_libraries(${name} PRIVATE hunch_lib)
  endif()
  target_link_libraries(${name} PRIVATE PkgConfig::CMOCKA)
  if(name STREQUAL "one_wait_test" OR (HUNCH_SANITIZE MATCHES "address" AND name IN_LIST HUNCH_APART_TESTS))
    hunch_apart(${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1200 SKIP_RETURN_CODE 77
    ENVIRONMENT HUNCH_CACHE=${CMAKE_BINARY_DIR}/cache) # costs measured beside other tests are nobody's
  if(name MATCHES "^fault_(load|load_long|round|grammar)_test$")
    target_link_options(${name} PRIVATE -Wl,--wrap=json_loadb) # tests/faults.h
  endif()
  if(name STREQUAL "drafter_failures_test")
    target_link_options(${name} PRIVATE -Wl,--wrap=hn_pass_run_with -Wl,--wrap=hn_cache_reserve)
  endif()
  if(name MATCHES "^command_(editing|interrupts|interrupts_long)_test$" AND LIBEDIT_FOUND)
    target_compile_definitions(${name} PRIVATE HUNCH_LIBEDIT)
  endif()
  if(name STREQUAL "tool_wrap_test") # of the command, which is no library
    target_sources(${name} PRIVATE src/cli/chat/tool_wrap.c src/cli/show/tool_show.c)
    target_link_libraries(${name} PRIVATE hunch_app PkgConfig::JANSSON)
  endif()
  if(name STREQUAL "twin_test")
    target_sources(${name} PRIVATE src/cli/tool_verify_exact.c)
    target_link_libraries(${name} PRIVATE hunch_app PkgConfig::JANSSON)
  endif()
  if(name MATCHES "_long_test$")
    set_tests_properties(${name} PROPERTIES LABELS long TIMEOUT 7200)
  elseif(name MATCHES "^(fault|hostile)_|_(hostile|bombs)_test$") # for the sanitizers: in Release `make test-long` runs them
    set_tests_properties(${name} PROPERTIES LABELS hostile)
  elseif(name MATCHES "^(acceptance_dist|auto_trees|bits|block_rows|cache_walk|callbacks|controller|controller_levels|\
controller_select|controller_tree|delta_state|draft_rows|drafter_model|equality|equality_heads|exact_dist|format_mutation|golden|\
golden_heads|golden_mtp|head_rows|heads_dist|hybrid_grid|learn|long_chunks|many_texts|mapped|match_dist|on_policy|one_wait|\
prompt_values|rules_dist|save_head|scheduler|serve_steps|shift|soak|soak_chat|template|vulkan_kinds|window)_test$")
    # seconds each, of cases that are alike: `make test` runs a sample of them (HUNCH_TEST_LIGHT), `make test-long` all
    set_tests_properties(${name} PROPERTIES LABELS sampled)
  elseif(name MATCHES "^(command_chat|command_check|command_dists|command_editing|command_rows|command_streams|command_terminal|command_train|\
disk_full|head_gguf|matcher|pages|plan|requests|session|signals|stream|structured|train_kinds|train_outputs)_test$")
    # seconds each, of which nothing depends on how kernels were compiled: `make test` runs them sanitized, `make test-long` in Release too
    set_tests_properties(${name} PROPERTIES LABELS sanitized)
  endif()
endforeach()
# Devices, where Vulkan has one: lavapipe is enough (Debian: mesa-vulkan-drivers); without any they are skipped. Release only: it is a
# compiler, whose memory the sanitizers would follow. Its lanes are 4 or 8, the bits the same.
if(NOT HUNCH_SANITIZE)
  add_test(NAME vulkan_shaders_test COMMAND python3 ${CMAKE_SOURCE_DIR}/scripts/shaders.py check)
  if(HUNCH_HAS_VULKAN)
    add_test(NAME vulkan_lanes_long_test COMMAND ${CMAKE_SOURCE_DIR}/tests/vulkan/lanes.sh $<TARGET_FILE:hunch> $<TARGET_FILE:vulkan_passes>
      ${CMAKE_SOURCE_DIR}/tests/data/models/stories260K/stories260K.f32.gguf)
    set_tests_properties(vulkan_lanes_long_test PROPERTIES LABELS long TIMEOUT 1200 SKIP_RETURN_CODE 77)
  endif()
  foreach(name golden equality bits)
    add_test(NAME ${name}_vulkan_long_test COMMAND ${CMAKE_SOURCE_DIR}/tests/vulkan/on_device.sh $<TARGET_FILE:hunch> $<TARGET_FILE:${name}_test>)
    set_tests_properties(${name}_vulkan_long_test PROPERTIES LABELS long TIMEOUT 7200 SKIP_RETURN_CODE 77
      ENVIRONMENT "HUNCH_CACHE=${CMAKE_BINARY_DIR}/cache;HUNCH_TEST_DEVICE=vulkan:0")
  endforeach()
endif()
# The tests of whole passes over the hostile backend, with all their cases and its memory protected, for `make test-long`.
if(NOT HUNCH_SANITIZE)
  foreach(name ${HUNCH_APART_TESTS})
    set(f ${HUNCH_TESTS} ${HUNCH_CROSS_TESTS})
    list(FILTER f INCLUDE REGEX "/${name}\\.c$")
    string(REPLACE "_test" "_apart_long_test" to ${name})
    add_executable(${to} ${f})
    target_include_directories(${to} PRIVATE src tests)
    target_compile_options(${to} PRIVATE ${HUNCH_TEST_OPTIONS} -Og)
    get_target_property(HUNCH_DEFINITIONS ${name} COMPILE_DEFINITIONS)
    target_compile_definitions(${to} PRIVATE ${HUNCH_DEFINITIONS})
    hunch_apart(${to})
    if(name MATCHES "^fault_")
      target_link_options(${to} PRIVATE -Wl,--wrap=json_loadb)
    endif()
    target_link_libraries(${to} PRIVATE hunch_lib PkgConfig::CMOCKA)
    add_test(NAME ${to} COMMAND ${to})
    set_tests_properties(${to} PROPERTIES LABELS long TIMEOUT 7200 SKIP_RETURN_CODE 77 ENVIRONMENT HUNCH_CACHE=${CMAKE_BINARY_DIR}/cache)
  endforeach()
endif()
# The command with a fault, which `--verify-exact` has to find: its objects, and one that plants it.
# What schemas_long_test.py asks.
add_executable(schema_texts tests/schema_texts.c)
target_include_directories(schema_texts PRIVATE src)
target_compile_definitions(schema_texts PRIVATE HUNCH_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
target_link_libraries(schema_texts PRIVATE hunch_lib)
add_executable(hunch-planted tests/planted_fault.c $<TARGET_OBJECTS:hunch>)
target_include_directories(hunch-planted PRIVATE src)
target_link_libraries(hunch-planted PRIVATE hunch_app ${HUNCH_CMD_NEEDS})
add_dependencies(command_exact_test hunch-planted)
# Needs Python packages of gigabytes: HUNCH_PYTHON names a Python that has them.
if(NOT HUNCH_SANITIZE)
  foreach(name speculators_long_test train_head_torch_long_test)
    add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/${name}.sh $<TARGET_FILE:hunch>)
    set_tests_properties(${name} PROPERTIES LABELS long TIMEOUT 1200 SKIP_RETURN_CODE 77)
  endforeach()
endif()
# The server, by a client of its own in Python's standard library (tests/server/); what is called long runs under `make test-long` only.
if(TARGET hunch-serve)
  foreach(name strangers harmony tools callers protocol protocols odd cases structured soak hostile clients_long protocols_long frameworks_long guidellm_long soak_long crowd_long hostile_long tools_long models_long)
    add_test(NAME server_${name}_test COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/server/server_${name}_test.py $<TARGET_FILE_DIR:hunch-serve>)
    set_tests_properties(server_${name}_test PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77
      ENVIRONMENT "HUNCH_CACHE=${CMAKE_BINARY_DIR}/cache;PYTHONDONTWRITEBYTECODE=1;HUNCH_MICROHTTPD=${MICROHTTPD_VERSION}")
    if(name MATCHES "_long$")
      set_tests_properties(server_${name}_test PROPERTIES LABELS long TIMEOUT 7200)
    elseif(name STREQUAL "hostile")
      set_tests_properties(server_${name}_test PROPERTIES LABELS hostile)
    elseif(name MATCHES "^(odd|protocols|structured)$") # as above
      set_tests_properties(server_${name}_test PROPERTIES LABELS sanitized)
    endif()
  endforeach()
endif()
# Needs jsonschema from PyPI.
if(NOT HUNCH_SANITIZE)
  foreach(name structured_long_test required_calls_long_test schemas_long_test)
    add_test(NAME ${name} COMMAND python3 ${CMAKE_SOURCE_DIR}/tests/${name}.py $<TARGET_FILE_DIR:hunch>)
    set_tests_properties(${name} PROPERTIES LABELS long TIMEOUT 7200 SKIP_RETURN_CODE 77)
  endforeach()
endif()
if(NOT HUNCH_SANITIZE) # nothing of these is built
  foreach(name shell_test scripts_test head_prompts_test peers_summary_test)
    add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/${name}.sh)
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
  endforeach()
endif()
# Bits of today, against the committed ones (tests/fingerprint.py). Those of the sanitized build are the same.
if(NOT HUNCH_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME fingerprint_test COMMAND ${CMAKE_SOURCE_DIR}/tests/fingerprint.py $<TARGET_FILE_DIR:hunch> --every 13)
  add_test(NAME fingerprint_long_test COMMAND ${CMAKE_SOURCE_DIR}/tests/fingerprint.py $<TARGET_FILE_DIR:hunch>)
  set_tests_properties(fingerprint_test fingerprint_long_test PROPERTIES TIMEOUT 1200 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
  set_tests_properties(fingerprint_long_test PROPERTIES LABELS long)
endif()
# Which instructions the library uses where. Sanitizers bring their own code.
if(NOT HUNCH_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME instructions_test COMMAND ${CMAKE_SOURCE_DIR}/tests/instructions_test.sh $<TARGET_FILE:hunch_lib>)
  set_tests_properties(instructions_test PROPERTIES SKIP_RETURN_CODE 77)
endif()
if(TARGET simulate)
  add_test(NAME simulate_test COMMAND ${CMAKE_SOURCE_DIR}/tests/simulate_test.sh $<TARGET_FILE:simulate>)
endif()
# Levels that the machine may lack, in forms that it can run (tests/check/check_forms.h).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64")
  target_sources(check_linear_test PRIVATE tests/check/linear_evex_vnni.c tests/check/linear_emulated_tiles.c)
  target_sources(check_attention_test PRIVATE tests/check/attention_emulated_tiles.c)
  set(forms ${AVX512})
  if(HUNCH_SANITIZE)
    list(APPEND forms -O2) # as kernels
    if(CMAKE_C_COMPILER_ID STREQUAL GNU)
      list(APPEND forms -fira-region=one -fno-gcse)
    endif()
  endif()
  if(HUNCH_SANITIZE MATCHES "undefined") # as other kernels
    list(APPEND forms -fno-sanitize=null,alignment,pointer-overflow,object-size)
  endif()
  set_source_files_properties(tests/check/linear_evex_vnni.c tests/check/linear_emulated_tiles.c
    tests/check/attention_emulated_tiles.c PROPERTIES COMPILE_OPTIONS "${forms}")
endif()
# That the bench of a busy core runs, not what it measures.
add_test(NAME bench_busy COMMAND ${CMAKE_SOURCE_DIR}/bench/busy.py -m ${CMAKE_SOURCE_DIR}/tests/data/models/stories260K/stories260K.f32.gguf
  --hunch $<TARGET_FILE:hunch> --passes 5 --turns 1 --strangers 2 --memory 1)
if(NOT CMAKE_CROSSCOMPILING)
  add_test(NAME install_test COMMAND ${CMAKE_SOURCE_DIR}/tests/install_test.sh ${CMAKE_BINARY_DIR} ${CMAKE_C_COMPILER} "${HUNCH_SANITIZE}")
  set_tests_properties(install_test PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
endif()
if(NOT HUNCH_SANITIZE) # which take more memory than is allowed there
  add_test(NAME limits_test COMMAND ${CMAKE_SOURCE_DIR}/tests/limits_test.sh $<TARGET_FILE:hunch>
    ${CMAKE_SOURCE_DIR}/tests/data/models/stories260K/stories260K.f32.gguf)
  set_tests_properties(limits_test PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
endif()
