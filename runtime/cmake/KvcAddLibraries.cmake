# kvc_add_libraries(NAME OBJECTS DESCRIPTION LIBRARIES...): lib<NAME>.a, lib<NAME>.so
# and <NAME>.pc of an object library and of the libraries that it needs.
#
# Of their symbols the C functions alone are there for others: the objects are
# joined to one, in which the rest is local. Else one copy of a C++ template would
# stand for both where an application has it too, and ours has no exceptions.
function(kvc_add_libraries name objects description)
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  # The address sanitizer has one flag for all that is linked.
  add_custom_command(OUTPUT ${joined}
    COMMAND ${CMAKE_CXX_COMPILER} -r -nostdlib -Wl,--force-group-allocation
      -o ${joined} $<TARGET_OBJECTS:${objects}>
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=kvc_*
      --keep-global-symbol=___asan_globals_registered ${joined}
    DEPENDS $<TARGET_OBJECTS:${objects}>
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name}_joined DEPENDS ${joined})
  add_dependencies(${name}_joined ${objects})
  add_library(${name} STATIC ${joined})
  add_library(${name}_shared SHARED ${joined})
  foreach(library ${name} ${name}_shared)
    add_dependencies(${library} ${name}_joined)
    set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
    target_include_directories(${library} INTERFACE
      $<BUILD_INTERFACE:${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${library} PRIVATE ${ARGN})
  endforeach()
  set_target_properties(${name}_shared PROPERTIES
    OUTPUT_NAME ${name}
    VERSION ${KVC_VERSION}
    SOVERSION 0)
  string(REPLACE kvc_ "" short ${name})
  foreach(kind "" _shared)
    set_target_properties(${name}${kind} PROPERTIES EXPORT_NAME ${short}${kind})
    add_library(kvc::${short}${kind} ALIAS ${name}${kind})
  endforeach()
  install(TARGETS ${name} ${name}_shared EXPORT kvcTargets)

  list(TRANSFORM ARGN PREPEND -l)
  list(JOIN ARGN " " libraries)
  string(REPLACE "-lThreads::Threads" "-pthread" libraries "${libraries}")
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/library.pc.in
    ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
