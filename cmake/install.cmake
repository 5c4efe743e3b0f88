# Files of `make install` under the prefix: command, libraries, header, hunch.pc, the CMake package, documents. None of the installed files
# names the prefix, so the folder can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hunch)

install(FILES include/hunch/hunch.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hunch)
install(TARGETS hunch hunch-train ${HUNCH_PROGRAMS} RUNTIME)
if(TARGET hunch_mpi)
  install(TARGETS hunch_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hunch)
endif()
install(TARGETS hunch_lib EXPORT hunch_static ARCHIVE INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT hunch_static NAMESPACE hunch:: FILE hunch-static-targets.cmake DESTINATION ${config_dir})
if(HUNCH_SHARED)
  install(TARGETS hunch_shared EXPORT hunch_shared LIBRARY INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT hunch_shared NAMESPACE hunch:: FILE hunch-shared-targets.cmake DESTINATION ${config_dir})
endif()

# ---- for find_package -------------------------------------------------------------------------------------------------------
set(compatible SameMajorVersion)
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(compatible SameMinorVersion)
endif()
configure_package_config_file(cmake/hunch-config.cmake.in hunch-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(hunch-config-version.cmake COMPATIBILITY ${compatible})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hunch-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/hunch-config-version.cmake
        DESTINATION ${config_dir})

# ---- for pkg-config: paths relative to hunch.pc, if they are below the prefix ----------------------------------------------------
set(pc_prefix ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH up /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  string(REGEX REPLACE "/$" "" up ${up})
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  set(pc_${dir} ${CMAKE_INSTALL_${dir}})
  if(NOT IS_ABSOLUTE ${pc_${dir}})
    set(pc_${dir} "\${prefix}/${pc_${dir}}")
  endif()
endforeach()
# Not in Requires.private: its -DUTF8PROC_EXPORTS, which only the archive needs, would become a flag of every program.
set(pc_utf8proc ${UTF8PROC_STATIC_LIBRARY_DIRS})
list(REMOVE_ITEM pc_utf8proc ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
list(TRANSFORM pc_utf8proc PREPEND -L)
foreach(library ${UTF8PROC_STATIC_LIBRARIES})
  list(APPEND pc_utf8proc -l${library})
endforeach()
list(JOIN pc_utf8proc " " pc_utf8proc)
configure_file(cmake/hunch.pc.in hunch.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hunch.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# ---- documents --------------------------------------------------------------------------------------------------------------
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

# ---- written by the command itself: man pages, completion ------------------------------------------------------------------------
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR) # else it cannot be run here
  set(pages ${CMAKE_CURRENT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${pages}.made DEPENDS hunch cmake/pages.cmake VERBATIM
    COMMAND ${CMAKE_COMMAND} "-DHUNCH=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:hunch>" -DOUT=${pages}
            -P ${CMAKE_SOURCE_DIR}/cmake/pages.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}.made)
  add_custom_target(hunch_pages ALL DEPENDS ${pages}.made)
  install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${pages}/completions/hunch DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${pages}/completions/_hunch DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${pages}/completions/hunch.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
else()
  add_custom_target(hunch_pages)
endif()
