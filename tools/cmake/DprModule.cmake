# dpr_module(NAME "what it is" SOURCES a.cu ... INCLUDES folder ... [ADMIT function] [REGISTERS n])
#
# Compiles the sources to relocatable device code, links it with the device runtime to a fat binary, and adds an object
# library NAME, which defines it as `const dpr_module NAME` (core/strategy.h). Kernels that launch kernels need all this,
# and are kept away from the library's other code by it: whoever links the library needs no device linker, and nothing of
# it is loaded before a kernel of it is asked for. ADMIT names the module's dpr_admit. REGISTERS is the most that a thread
# has. Without a limit, functions called through pointers may use any number of registers.

set(dpr_module_template ${CMAKE_CURRENT_LIST_DIR}/module.c.in)

# Sets `out` to nvcc's options for machine code of CMAKE_CUDA_ARCHITECTURES. The device linker takes no PTX.
function(dpr_machine_code out)
    set(options "")
    foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
        if(architecture MATCHES "^([0-9]+[af]?)(-real)?$")
            list(APPEND options -gencode arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1})
        elseif(architecture MATCHES "^(native|all|all-major)$")
            list(APPEND options -arch=${architecture})
        endif()
    endforeach()
    if(NOT options)
        message(FATAL_ERROR "dpr: CMAKE_CUDA_ARCHITECTURES is \"${CMAKE_CUDA_ARCHITECTURES}\", of which there is no "
                            "machine code, and kernels that launch kernels need it")
    endif()
    set(${out} "${options}" PARENT_SCOPE)
endfunction()

function(dpr_module name what)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "REGISTERS;ADMIT" "SOURCES;INCLUDES")
    dpr_machine_code(code)
    set(nvcc ${CMAKE_CUDA_COMPILER})
    if(CMAKE_CUDA_HOST_COMPILER)
        list(APPEND nvcc -ccbin=${CMAKE_CUDA_HOST_COMPILER})
    endif()
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_CUDA_FLAGS}")
    list(APPEND flags -std=c++${CMAKE_CUDA_STANDARD} -O2 -DNDEBUG -DDPR_WITH_CUDA=1 -Xcompiler=-Wall,-Wextra ${code})
    if(arg_REGISTERS)
        list(APPEND flags -maxrregcount=${arg_REGISTERS})
    endif()
    if(NOT DPR_NESTED_LAUNCHES)
        list(APPEND flags -DDPR_WITHOUT_LAUNCHES)
    endif()
    if(DPR_WERROR)
        list(APPEND flags -Werror=all-warnings)
    endif()
    list(TRANSFORM arg_INCLUDES PREPEND -I)
    set(objects "")
    foreach(source IN LISTS arg_SOURCES)
        set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.${source}.o)
        string(REPLACE " " "\\ " target ${object}) # as makefiles write it, of which the depfile is one
        add_custom_command(OUTPUT ${object}
            COMMAND ${nvcc} ${flags} ${arg_INCLUDES} -rdc=true -dc ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
                    -MD -MF ${object}.d -MT ${target}
            MAIN_DEPENDENCY ${source} DEPFILE ${object}.d
            COMMENT "Compiling ${source} for the module of ${what}" VERBATIM)
        list(APPEND objects ${object})
    endforeach()
    # Kernels are asked for by their names, which the linker does not see: else it leaves out those that no other launches.
    set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
    add_custom_command(OUTPUT ${image}
        COMMAND ${nvcc} -dlink -fatbin ${code} -Xnvlink=--ignore-host-info ${dpr_compression} ${objects} -lcudadevrt -o ${image}
        DEPENDS ${objects} COMMENT "Linking the module of ${what}" VERBATIM)
    set(admit NULL)
    set(admit_declaration "")
    if(arg_ADMIT)
        set(admit ${arg_ADMIT})
        set(admit_declaration "extern dpr_admit ${admit};")
    endif()
    set(definition ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
    configure_file(${dpr_module_template} ${definition} @ONLY)
    set_source_files_properties(${definition} PROPERTIES OBJECT_DEPENDS ${image})
    add_library(${name} OBJECT ${definition})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:dpr_objects,INCLUDE_DIRECTORIES>)
    target_link_libraries(${name} PRIVATE dpr_options)
endfunction()
