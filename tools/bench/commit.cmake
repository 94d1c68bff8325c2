# Writes a header with what `git describe` says of SOURCE to HEADER; "" where that is no git checkout. Leaves a header
# alone that is as it should be, so that nothing is built again for it.
set(commit "")
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${git} --no-optional-locks -C ${SOURCE} describe --always --dirty
                    OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
    if(code EQUAL 0)
        string(REGEX REPLACE "[^-+._A-Za-z0-9]" "" commit "${text}")
    endif()
endif()
set(wanted "#define DPR_COMMIT \"${commit}\"\n")
set(there "")
if(EXISTS ${HEADER})
    file(READ ${HEADER} there)
endif()
if(NOT there STREQUAL wanted)
    file(WRITE ${HEADER} "${wanted}")
endif()
