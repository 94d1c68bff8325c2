# The library's targets. core/, coop/, dp/ and host/ add their sources to dpr_objects.
#
#   dpr, dpr_static   the library, shared and static; dpr::dpr and dpr::static to users
#   dpr_internal      the static library with the internal headers: for the command and the tests
#   dpr_options       warnings and sanitizers, for every target of this project

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC IMPORTED_TARGET hwloc>=2.0)
if(NOT HWLOC_FOUND)
    message(FATAL_ERROR "hwloc 2 was not found: install its development package (Debian and Ubuntu: libhwloc-dev)")
endif()

add_library(dpr_options INTERFACE)
target_compile_options(dpr_options INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
    # As in C, a strategy's table leaves out the members that are 0 or NULL.
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers>)
if(DPR_WERROR)
    target_compile_options(dpr_options INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(DPR_SANITIZE)
    if(NOT DPR_SANITIZE MATCHES "^(address|leak|thread|undefined)(,(address|leak|thread|undefined))*$")
        message(FATAL_ERROR "DPR_SANITIZE is \"${DPR_SANITIZE}\"; it should be empty, or address, leak, thread or "
                            "undefined, or several of them with commas between")
    endif()
    target_compile_options(dpr_options INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${DPR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
    target_link_options(dpr_options INTERFACE -fsanitize=${DPR_SANITIZE})
endif()
if(DPR_FUZZ)
    target_compile_options(dpr_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
endif()

# What the library needs at link time, whether it is linked here or, as libdpr.a, in a program.
set(dpr_link_libraries PkgConfig::HWLOC Threads::Threads ${CMAKE_DL_LIBS} m)
if(DPR_WITH_CUDA)
    list(APPEND dpr_link_libraries CUDA::cudart_static rt)
endif()

add_library(dpr_objects OBJECT)
set_target_properties(dpr_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(dpr_objects
    PUBLIC ${PROJECT_SOURCE_DIR}/core/include ${PROJECT_BINARY_DIR}/include
    PRIVATE ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/host)
target_link_libraries(dpr_objects PRIVATE dpr_options ${dpr_link_libraries})
target_compile_definitions(dpr_objects PRIVATE $<$<BOOL:${DPR_WITH_CUDA}>:DPR_WITH_CUDA=1>)
# The kernels' host side does without the C++ library, so that a plain C linker links the library.
target_compile_options(dpr_objects PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics;${dpr_compression}>")
# Kernels may not use local memory. This is the architecture that they are tuned for, and what is built where there is no
# card; tests/check_kernels.cmake looks at any architecture, if there is a cuobjdump.
if(DPR_WERROR AND DPR_WITH_CUDA AND CMAKE_CUDA_ARCHITECTURES MATCHES "^90(-real)?$")
    target_compile_options(dpr_objects PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-warn-spills,-warn-lmem-usage>")
endif()

add_library(dpr SHARED $<TARGET_OBJECTS:dpr_objects>)
add_library(dpr_static STATIC $<TARGET_OBJECTS:dpr_objects>)
add_library(dpr::dpr ALIAS dpr)
add_library(dpr::static ALIAS dpr_static)

# While the major version is 0, minor versions may differ in their interface, so that the name that programs load has both.
set(dpr_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    string(APPEND dpr_soversion .${PROJECT_VERSION_MINOR})
endif()

# C links both, so that users need no C++ or CUDA linker.
set_target_properties(dpr dpr_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME dpr)
set_target_properties(dpr PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${dpr_soversion} EXPORT_NAME dpr)
set_target_properties(dpr_static PROPERTIES EXPORT_NAME static)
foreach(target IN ITEMS dpr dpr_static)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>
        $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_link_libraries(dpr PRIVATE $<BUILD_INTERFACE:dpr_options> ${dpr_link_libraries})
target_link_libraries(dpr_static PRIVATE ${dpr_link_libraries})

# Visibility hides the library's own internals; the version script also hides what comes in with static libraries.
set(dpr_version_script ${PROJECT_SOURCE_DIR}/tools/packaging/libdpr.map)
target_link_options(dpr PRIVATE -Wl,--version-script=${dpr_version_script})
set_target_properties(dpr PROPERTIES LINK_DEPENDS ${dpr_version_script})
if(NOT DPR_SANITIZE)
    target_link_options(dpr PRIVATE -Wl,-z,defs)
endif()

# Debug information is most of the library's size if it is not compressed.
target_link_options(dpr PRIVATE -Wl,--compress-debug-sections=zlib)

# dlclose() leaves the library in place: worker threads run its code, and CUDA and fork() call it back.
target_link_options(dpr PRIVATE -Wl,-z,nodelete)

add_library(dpr_internal INTERFACE)
target_link_libraries(dpr_internal INTERFACE dpr_static dpr_options ${dpr_link_libraries})
target_include_directories(dpr_internal INTERFACE ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/host)
target_compile_definitions(dpr_internal INTERFACE $<$<BOOL:${DPR_WITH_CUDA}>:DPR_WITH_CUDA=1>)

# Adds a folder's sources, given relative to it.
function(dpr_sources)
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    target_sources(dpr_objects PRIVATE ${ARGN})
endfunction()

# Compiles a static library's sources with policies of recursions, as C++ in a build without CUDA. Otherwise as relocatable
# code, which the engines that launch kernels need; other targets then link the library without a device linker.
function(dpr_policies target)
    if(NOT DPR_WITH_CUDA)
        set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX)
        return()
    endif()
    set_target_properties(${target} PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_RESOLVE_DEVICE_SYMBOLS ON)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-maxrregcount=64>)
endfunction()
