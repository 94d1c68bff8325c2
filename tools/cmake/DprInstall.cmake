# Headers, both libraries, dprConfig.cmake, dpr.pc and the licence. Nothing installed names the prefix, so the tree can
# be moved, unless CMAKE_INSTALL_LIBDIR is absolute.

include(CMakePackageConfigHelpers)
set(dpr_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dpr)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/core/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${dpr_plain_header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dpr)
# dp/include has put them together.
install(FILES ${PROJECT_BINARY_DIR}/include/dpr_recursion.cuh DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(DPR_WITH_CUDA)
    install(FILES ${PROJECT_BINARY_DIR}/include/dpr_nested.cuh DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/dpr/device DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dpr)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# Two export sets: the shared library needs nothing of the machine's, and must be found where hwloc's headers or the
# CUDA toolkit are not.
install(TARGETS dpr EXPORT dprTargets)
install(TARGETS dpr_static EXPORT dprStaticTargets)
install(EXPORT dprTargets NAMESPACE dpr:: DESTINATION ${dpr_cmake_dir})
install(EXPORT dprStaticTargets NAMESPACE dpr:: DESTINATION ${dpr_cmake_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/packaging/dprConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/dprConfig.cmake INSTALL_DESTINATION ${dpr_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/dprConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/dprConfig.cmake ${PROJECT_BINARY_DIR}/package/dprConfigVersion.cmake
        DESTINATION ${dpr_cmake_dir})

# pkg-config follows the .pc file's own place when the prefix is given relative to it. A file in an absolute place does
# not move with the prefix, so it names the prefix. In a .pc file, spaces divide arguments.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(dpr_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH dpr_pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix)
    string(REGEX REPLACE "/$" "" dpr_pc_prefix "\${pcfiledir}/${dpr_pc_prefix}")
endif()
cmake_path(APPEND dpr_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}") # an absolute folder stays as it is
cmake_path(APPEND dpr_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
foreach(place IN ITEMS prefix libdir includedir)
    string(REPLACE " " "\\ " dpr_pc_${place} "${dpr_pc_${place}}")
endforeach()
# hwloc and the libraries that a static hwloc needs, as its own file lists them. Not by Requires.private, because then
# pkg-config would ask for hwloc.pc where the shared library is used, too; and without those libraries that are not
# installed, because the linker would ask for them, although it finds a shared hwloc that needs none.
set(dpr_pc_libs "")
foreach(flag IN LISTS HWLOC_STATIC_LDFLAGS)
    if(flag MATCHES "^-l(.+)")
        find_library(dpr_pc_${CMAKE_MATCH_1} ${CMAKE_MATCH_1} HINTS ${HWLOC_STATIC_LIBRARY_DIRS} NO_CACHE)
        if(NOT dpr_pc_${CMAKE_MATCH_1})
            message(STATUS "dpr.pc leaves out ${flag}, which hwloc.pc names, as it is not installed")
            continue()
        endif()
    endif()
    list(APPEND dpr_pc_libs ${flag})
endforeach()
if(DPR_WITH_CUDA)
    list(PREPEND dpr_pc_libs -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt)
endif()
list(APPEND dpr_pc_libs -lpthread -ldl -lm)
list(JOIN dpr_pc_libs " " dpr_pc_libs_private)
configure_file(${PROJECT_SOURCE_DIR}/tools/packaging/dpr.pc.in ${PROJECT_BINARY_DIR}/package/dpr.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/dpr.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
