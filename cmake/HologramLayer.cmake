# One folder of src/ is one layer: one static library hologram_X (alias hologram::X) made of every
# .cpp in it, and one test program X_test made of every *_test.cpp beside them.
#
#   hologram_layer(isa LINK hologram::support [PRIVATE_LINK ...] [TEST_LINK ...] [RUNTIME]
#                  [SOURCES extra...] [EXCLUDE regex] [SMALL regex [FAST regex]] [LEAN])
#
# RUNTIME: a layer of the runtime: no exceptions, no RTTI, and no tables for unwinding the stack.
# SMALL: these sources, but for those that FAST matches, are compiled for size in a release: each of
# their loops counts for little. LEAN: the others without what -O3 adds beyond vectors: copies of a
# loop for each case of a condition, which cost more bytes than they save time.
function(hologram_layer name)
  cmake_parse_arguments(ARG "RUNTIME;LEAN" "EXCLUDE;SMALL;FAST" "LINK;PRIVATE_LINK;TEST_LINK;SOURCES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  # *_test.cpp are tests, *_fuzz.cpp fuzz targets, *_main.cpp programs: none belongs in the library.
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|main)\\.cpp$")
  list(APPEND sources ${ARG_SOURCES})
  string(REPLACE "/" "_" target ${name})

  if(sources)
    add_library(hologram_${target} STATIC ${sources})
    set(scope PUBLIC)
    if(ARG_RUNTIME)
      target_compile_options(hologram_${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions> $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
    endif()
    # Not where a sanitizer's or fuzzer's own level is set.
    if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O3")
      if(ARG_RUNTIME)
        target_compile_options(hologram_${target} PRIVATE
          $<$<CONFIG:Release>:-fno-asynchronous-unwind-tables>
          $<$<CONFIG:Release>:-ffunction-sections> $<$<CONFIG:Release>:-fdata-sections>)
      endif()
      if(ARG_LEAN)
        target_compile_options(hologram_${target} PRIVATE $<$<CONFIG:Release>:-O2>)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
          target_compile_options(hologram_${target} PRIVATE
            $<$<CONFIG:Release>:-fvect-cost-model=dynamic>)
        endif()
      endif()
      if(ARG_SMALL)
        set(small ${sources})
        list(FILTER small INCLUDE REGEX "${ARG_SMALL}")
        if(ARG_FAST)
          list(FILTER small EXCLUDE REGEX "${ARG_FAST}")
        endif()
        # For size GCC copies by `rep movsb`, which is slow where it matters.
        set(size_flags -Os)
        if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
          list(APPEND size_flags -mstringop-strategy=libcall)
        endif()
        set_source_files_properties(${small} PROPERTIES COMPILE_OPTIONS
          "$<$<CONFIG:Release>:${size_flags}>")
      endif()
    endif()
  else()
    add_library(hologram_${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(hologram::${target} ALIAS hologram_${target})
  target_include_directories(hologram_${target} ${scope}
    ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(hologram_${target} ${scope} ${ARG_LINK})
  if(sources AND ARG_PRIVATE_LINK)
    target_link_libraries(hologram_${target} PRIVATE ${ARG_PRIVATE_LINK})
  endif()

  if(HOLOGRAM_TESTS AND tests)
    hologram_test(${target}_test SOURCES ${tests} LINK hologram::${target} ${ARG_TEST_LINK})
  endif()
endfunction()

# One GoogleTest program and its ctest entry. LABELS unit (the default), error, differential, ...
# SERIAL: the test measures or loads the whole machine and must run alone.
function(hologram_test name)
  if(NOT HOLOGRAM_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "SERIAL" "TIMEOUT" "SOURCES;LINK;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_definitions(${name} PRIVATE HOLOGRAM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    RUN_SERIAL $<BOOL:${ARG_SERIAL}>)
endfunction()

# One libFuzzer target; only with HOLOGRAM_FUZZ (the `fuzz` preset). `fuzz_targets` builds all of
# them and only the layers they need; ./dev runs every bin/*_fuzz that is there.
add_custom_target(fuzz_targets)
function(hologram_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(HOLOGRAM_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
    add_dependencies(fuzz_targets ${name})
  endif()
endfunction()

function(hologram_add_folder folder)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt)
    add_subdirectory(${CMAKE_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/${folder})
  endif()
endfunction()

function(hologram_add_layer_folder layer)
  hologram_add_folder(src/${layer})
endfunction()
