# cmake "-DOBJECTS=x.cu.o;y.cu.o" -DARCHITECTURES=N -DMOST=BYTES -P check_size.cmake
#
# The code for GPUs in these files, compressed as the library holds it, has at most so many bytes for each architecture.
# "skipped: why" where size is missing.
find_program(SIZE size)
if(NOT SIZE)
  message(NOTICE "skipped: size was not found")
  return()
endif()

set(sum 0)
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${SIZE} -A ${object} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(NOT text MATCHES "\n\\.nv_fatbin +([0-9]+)")
    message(FATAL_ERROR "${object} has no code for GPUs:\n${text}")
  endif()
  math(EXPR sum "${sum} + ${CMAKE_MATCH_1}")
endforeach()
math(EXPR each "${sum} / ${ARCHITECTURES}")
if(sum EQUAL 0 OR each GREATER MOST)
  message(FATAL_ERROR "${each} bytes for each of ${ARCHITECTURES} architectures, of at most ${MOST}: ${OBJECTS}")
endif()
message(STATUS "${each} bytes for each of ${ARCHITECTURES} architectures, of at most ${MOST}")
