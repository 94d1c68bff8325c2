# cmake -DLIBRARY=libdpr.a -DCUOBJDUMP_HINT=folder -P check_kernels.cmake
#
# Kernel resource budgets: no kernel may spill or use local memory. "skipped: why" where cuobjdump is missing.
find_program(CUOBJDUMP cuobjdump HINTS ${CUOBJDUMP_HINT})
if(NOT CUOBJDUMP)
  message(NOTICE "skipped: cuobjdump was not found")
  return()
endif()
execute_process(COMMAND ${CUOBJDUMP} --dump-resource-usage ${LIBRARY} OUTPUT_VARIABLE text ERROR_VARIABLE text
                RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "cuobjdump failed:\n${text}")
endif()
# " Function NAME:\n  REG:32 STACK:0 SHARED:0 LOCAL:0 ..."
string(REGEX MATCHALL "Function [^\n]*:[ \t\r]*\n[^\n]*REG:[0-9]+ STACK:[0-9]+[^\n]*LOCAL:[0-9]+" kernels "${text}")
list(LENGTH kernels count)
if(count LESS 100)
  message(FATAL_ERROR "only ${count} kernels found; is the format of cuobjdump another?\n${text}")
endif()
set(bad "")
foreach(kernel IN LISTS kernels)
  if(NOT kernel MATCHES "STACK:0 .*LOCAL:0$")
    string(APPEND bad "${kernel}\n")
  endif()
endforeach()
if(NOT bad STREQUAL "")
  message(FATAL_ERROR "kernels with a stack frame or local memory:\n${bad}")
endif()
message(STATUS "${count} kernels, none with a stack frame or local memory")
