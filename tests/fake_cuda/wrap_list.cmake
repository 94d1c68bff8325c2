# cmake -DNM=nm -DLIBRARIES=a.a,b.a -DOUTPUT=wraps.rsp -P wrap_list.cmake
#
# Writes a --wrap option for every CUDA runtime function that the libraries leave undefined.
string(REPLACE "," ";" LIBRARIES "${LIBRARIES}")
execute_process(COMMAND ${NM} -u ${LIBRARIES} OUTPUT_VARIABLE symbols ERROR_QUIET RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${NM} -u ${LIBRARIES} failed")
endif()
string(REGEX MATCHALL " U cuda[A-Z][A-Za-z0-9_]*" names "${symbols}")
list(TRANSFORM names REPLACE "^ U " "")
list(REMOVE_DUPLICATES names)
list(SORT names)
list(LENGTH names count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} CUDA functions in ${LIBRARIES}: ${names}")
endif()
list(TRANSFORM names PREPEND "-Wl,--wrap=")
list(JOIN names "\n" text)
file(WRITE ${OUTPUT} "${text}\n")
