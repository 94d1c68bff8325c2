# cmake -DLIBRARY=libdpr.a -DMODULE=x.fatbin -DCUOBJDUMP_HINT=folder -P check_kernels.cmake
#
# Kernel resource budgets: no kernel may spill or use local memory. Those of the module may have the 16 bytes of stack
# that a launch from a kernel takes, and the one that is launched, which calls functions by their addresses, what those
# take. "skipped: why" where cuobjdump is missing.
find_program(CUOBJDUMP cuobjdump HINTS ${CUOBJDUMP_HINT})
if(NOT CUOBJDUMP)
  message(NOTICE "skipped: cuobjdump was not found")
  return()
endif()

# Checks the kernels of `file`, and the functions that they call, for more than `most` bytes of stack and for local
# memory. CUDA's own functions, which a linked module has beside, are left alone: their names begin with "__".
function(check_kernels file most)
  execute_process(COMMAND ${CUOBJDUMP} --dump-resource-usage ${file} OUTPUT_VARIABLE text ERROR_VARIABLE text
                  RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "cuobjdump failed:\n${text}")
  endif()
  # " Function NAME:\n  REG:32 STACK:0 SHARED:0 LOCAL:0 ..."
  string(REGEX MATCHALL "Function [^\n]*:[ \t\r]*\n[^\n]*REG:[0-9]+ STACK:[0-9]+[^\n]*LOCAL:[0-9]+" kernels "${text}")
  list(FILTER kernels EXCLUDE REGEX "^Function __")
  list(LENGTH kernels count)
  if(count LESS 100)
    message(FATAL_ERROR "only ${count} kernels found in ${file}; is the format of cuobjdump another?\n${text}")
  endif()
  set(bad "")
  foreach(kernel IN LISTS kernels)
    set(allowed ${most})
    if(kernel MATCHES "^Function dpr_go_on:")
      set(allowed 512)
    endif()
    string(REGEX MATCH "STACK:([0-9]+) .*LOCAL:([0-9]+)$" found "${kernel}")
    if(NOT found OR CMAKE_MATCH_1 GREATER allowed OR CMAKE_MATCH_2 GREATER 0)
      string(APPEND bad "${kernel}\n")
    endif()
  endforeach()
  if(NOT bad STREQUAL "")
    message(FATAL_ERROR "kernels with more than ${most} bytes of stack, or local memory, in ${file}:\n${bad}")
  endif()
  message(STATUS "${file}: ${count} kernels, none with more than ${most} bytes of stack or local memory")
endfunction()

check_kernels(${LIBRARY} 0)
check_kernels(${MODULE} 16)
