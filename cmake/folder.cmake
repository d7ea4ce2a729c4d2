# compile_together(TARGET)
#
# Compiles a target's sources a dozen at a time, which costs a third of what one by one costs: most of
# a compiler's time goes into headers. Names in anonymous namespaces must then differ within a folder.
# PIPESIM_TOGETHER=OFF (preset `dev`) compiles each source alone.
function(compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PIPESIM_TOGETHER}
                                             UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# optimise_little(TARGET): for what a run spends no time in.
function(optimise_little target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

# pipesim_folder(FOLDER [OBJECT] [RECURSE] [TOGETHER] [COLD]
#                [LINK TARGET-OR-FOLDER...] [EXCEPT FILE...])
#
# One library per folder, of all its sources: sim/core becomes the target pipesim_sim_core. Folders
# are linked by their path, other targets by their name. OBJECT keeps static registration alive.
# TOGETHER: compile_together. COLD: that and optimise_little.
function(pipesim_folder folder)
  cmake_parse_arguments(arg "OBJECT;RECURSE;TOGETHER;COLD" "" "LINK;EXCEPT" ${ARGN})
  string(REPLACE "/" "_" name pipesim_${folder})
  if(arg_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  endif()
  foreach(file ${arg_EXCEPT})
    list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${folder}/${file})
  endforeach()
  if(arg_OBJECT)
    add_library(${name} OBJECT ${sources})
  else()
    add_library(${name} STATIC ${sources})
  endif()
  if(arg_TOGETHER OR arg_COLD)
    compile_together(${name})
  endif()
  if(arg_COLD)
    optimise_little(${name})
  endif()
  foreach(other ${arg_WITH})
    string(REPLACE "/" "_" other_name pipesim_${other})
    add_library(${other_name} ALIAS ${name})
  endforeach()
  target_link_libraries(${name} PUBLIC pipesim_options)
  foreach(other ${arg_LINK})
    string(REPLACE "/" "_" other_name pipesim_${other})
    if(NOT TARGET ${other_name})
      target_link_libraries(${name} PUBLIC ${other})
      continue()
    endif()
    target_link_libraries(${name} PUBLIC ${other_name})
    get_target_property(type ${other_name} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      # Objects are handed on to every executable, which a plain link of a link would drop.
      target_sources(${name} INTERFACE $<TARGET_OBJECTS:${other_name}>)
    endif()
  endforeach()
endfunction()
