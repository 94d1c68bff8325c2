# cmake -DCC=compiler -DHEADER=dpr.h -DOUTPUT=plain.h -P plain.cmake
#
# Writes what the preprocessor of gcc or clang makes of dpr.h: declarations and comments, without directives and macros.
# Macros of dpr.h whose values are integers become enumerators.

set(preprocess ${CC} -std=c11 -nostdinc -DDPR_PLAIN_ -E -P -x c)

# Sets `out` to lines "    NAME = value," for the macros.
function(dpr_constants out)
    file(STRINGS ${HEADER} macros REGEX "^#define DPR_[A-Z0-9_]+ ")
    list(TRANSFORM macros REPLACE "^#define (DPR_[A-Z0-9_]+) .*" "\"\\1\" \\1\n")
    list(JOIN macros "" macros)
    file(WRITE ${OUTPUT}.c "#include \"${HEADER}\"\n${macros}")
    execute_process(COMMAND ${preprocess} ${OUTPUT}.c OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    file(REMOVE ${OUTPUT}.c)
    set(lines "")
    string(REGEX MATCHALL "\"DPR_[A-Z0-9_]+\" [-+*|()<>0-9a-fxA-F ]+\n" constants "${text}")
    foreach(constant IN LISTS constants)
        string(REGEX MATCH "\"(.*)\" (.*)\n" ignored "${constant}")
        math(EXPR value "${CMAKE_MATCH_2}")
        string(APPEND lines "    ${CMAKE_MATCH_1} = ${value},\n")
    endforeach()
    set(${out} "${lines}" PARENT_SCOPE)
endfunction()

# Cuts the comments of the lists, which describe macros, out of the text in `var`.
function(dpr_cut_lists var)
    set(text "${${var}}")
    string(FIND "${text}" "/* THE list" begin)
    while(NOT begin EQUAL -1)
        string(SUBSTRING "${text}" 0 ${begin} before)
        string(SUBSTRING "${text}" ${begin} -1 after)
        string(FIND "${after}" "*/\n" end)
        math(EXPR end "${end} + 3")
        string(SUBSTRING "${after}" ${end} -1 after)
        string(CONCAT text "${before}" "${after}")
        string(FIND "${text}" "/* THE list" begin)
    endwhile()
    set(${var} "${text}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${preprocess} -C ${HEADER} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
dpr_constants(constants)
dpr_cut_lists(text)
string(REPLACE "\nDPR_API " "\n" text "${text}")
string(REGEX REPLACE "([{,]) (DPR_[A-Z0-9_]+ = )" "\\1\n    \\2" text "${text}")
string(REGEX REPLACE "(,|[0-9]) }" "\\1\n}" text "${text}")
string(REPLACE ";\nenum" ";\n\nenum" text "${text}")
string(REPLACE "\n/*" "\n\n/*" text "${text}")
string(REPLACE "\n\n/* ---- Statuses" "\n\n/** Macros of dpr.h. */\nenum {\n${constants}};\n\n/* ---- Statuses"
       text "${text}")
if(NOT text MATCHES "DPR_VERSION_MAJOR = " OR text MATCHES "(^|\n)[ \t]*#|DPR_API|__")
    message(FATAL_ERROR "${HEADER} does not become a plain header: directives or macros are left, or its sections have "
                        "other names")
endif()
file(WRITE ${OUTPUT}
"/* The declarations of dpr.h for other languages: no preprocessor directives, no macros. Made from dpr.h by the build.
 *
 * Its reader has to know size_t, int32_t, int64_t, uint32_t and uint64_t. C and C++ programs should include dpr.h
 * instead; no source file can include both. Comments name macros of dpr.h. The functions dpr_..._init() do what the
 * macros DPR_..._INIT do: call the struct's function with the struct's size in bytes.
 */

${text}")
