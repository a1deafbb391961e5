# hologram_front_end: kernel source to ISA, without the JSON form. The runtime, an earlier layer,
# includes this for its bundle tool; src/lang adds the rest.
if(NOT TARGET hologram_front_end)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/lang/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cpp$")
  add_library(hologram_front_end STATIC ${sources})
  target_include_directories(hologram_front_end PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(hologram_front_end PUBLIC hologram::isa hologram::support)
endif()
