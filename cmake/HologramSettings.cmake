# Compiler settings shared by every target.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# -ffp-contract=off: a product and a sum are fused only where the source says fma, so that one
# source gives one result on every level. -fno-math-errno: sqrt compiles to an instruction.
add_compile_definitions(HOLOGRAM_VERSION="${PROJECT_VERSION}")
# -Wno-restrict, -Wno-stringop-overread, -Wno-maybe-uninitialized: false alarms of GCC 12 inside the
# standard library (string concatenation, vector comparison, std::expected).
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# GCC 12's std::stable_sort uses what the same library marks as deprecated.
add_compile_options($<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno)
# Symbols of shared libraries are bound as a process starts, not one by one while it opens its first
# archive.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_link_options(LINKER:-z,now)
endif()
if(HOLOGRAM_SANITIZE)
  add_compile_options(-fsanitize=${HOLOGRAM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${HOLOGRAM_SANITIZE})
  # Runtime layers have no type information, which that check needs.
  add_compile_options(-fno-sanitize=vptr)
  add_compile_definitions(HOLOGRAM_SANITIZED=1)
endif()

# A compiler cache, where there is one, only changes how long a build takes.
find_program(HOLOGRAM_CCACHE ccache)
if(HOLOGRAM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${HOLOGRAM_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HOLOGRAM_CCACHE})
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
if(HOLOGRAM_TESTS)
  find_package(GTest REQUIRED)
  enable_testing()
endif()
if(HOLOGRAM_BENCH)
  find_package(benchmark REQUIRED)
endif()
