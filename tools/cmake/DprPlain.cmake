# The target dpr_plain_header makes include/dpr/plain.h in the build tree from dpr.h and its lists.

set(dpr_plain_header ${PROJECT_BINARY_DIR}/include/dpr/plain.h)
set(dpr_plain_script ${CMAKE_CURRENT_LIST_DIR}/plain.cmake)
file(GLOB dpr_lists CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/include/dpr/*.def)
add_custom_command(OUTPUT ${dpr_plain_header}
    COMMAND ${CMAKE_COMMAND} -DCC=${CMAKE_C_COMPILER} -DHEADER=${PROJECT_SOURCE_DIR}/core/include/dpr.h
            -DOUTPUT=${dpr_plain_header} -P ${dpr_plain_script}
    DEPENDS ${PROJECT_SOURCE_DIR}/core/include/dpr.h ${dpr_lists} ${dpr_plain_script}
    COMMENT "Making dpr/plain.h" VERBATIM)
add_custom_target(dpr_plain_header ALL DEPENDS ${dpr_plain_header})
