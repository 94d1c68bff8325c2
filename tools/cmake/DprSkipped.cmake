# dpr_add_skipped(name reason): adds a test that is skipped, with the reason, for what this build lacks.
function(dpr_add_skipped name reason)
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${reason}")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()
