# Toolchain: WebAssembly with vectors of 128 bits, by Debian's clang 19 and the packages wasi-libc,
# libc++-19-dev-wasm32, libclang-rt-19-dev-wasm32 and lld-19. Headers that are the same everywhere
# (Highway, fmt) come from /usr/include, where clang looks last.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_FLAGS_INIT -msimd128)
