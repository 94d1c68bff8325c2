# The linters as tests. They skip themselves, with the reason, where they are not installed.
foreach(linter IN ITEMS format tidy shell)
    add_test(NAME lint.${linter} COMMAND ${PROJECT_SOURCE_DIR}/tools/lint.sh ${linter} ${PROJECT_BINARY_DIR})
    set_tests_properties(lint.${linter} PROPERTIES LABELS lint SKIP_RETURN_CODE 77)
endforeach()

# Takes minutes, so it begins before the short tests.
set_tests_properties(lint.tidy PROPERTIES COST 200)
