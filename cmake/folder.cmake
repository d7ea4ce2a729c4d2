# compile_together(TARGET)
#
# Compiles a target's sources a dozen at a time, which costs a third of what one by one costs: most of
# a compiler's time goes into headers. Names in anonymous namespaces must then differ within a folder.
# PIPESIM_TOGETHER=OFF (preset `dev`) compiles each source alone.
function(compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PIPESIM_TOGETHER}
                                             UNITY_BUILD_BATCH_SIZE 12)
endfunction()

# optimise_little(TARGET): for code in which a run spends no time. Beneath sanitizers it is not optimised at
# all, which takes 12 s where -O1 takes 28.
function(optimise_little target)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>
    $<$<AND:$<BOOL:${PIPESIM_FUZZ}>,$<COMPILE_LANGUAGE:CXX>>:-O0>)
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

# link_what_is_included(TARGET FILE...)
#
# Links the libraries of the headers that the files include, directly or through headers of tests/ and bench/.
# A file that names PIPESIM_EXECUTABLE runs the programs, which are built first.
function(link_what_is_included target)
  set(files ${ARGN})
  set(seen)
  while(files)
    list(POP_FRONT files file)
    if(file IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${file})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines REGEX "^#include|PIPESIM_EXECUTABLE")
    foreach(line IN LISTS lines)
      if(line MATCHES "PIPESIM_EXECUTABLE")
        add_dependencies(${target} pipesim pipesim-fit pipesim-replay pipesim-calibrate-cpu)
      elseif(line MATCHES "<nlohmann/")
        target_link_libraries(${target} PRIVATE nlohmann_json::nlohmann_json)
      elseif(line MATCHES "<boost/")
        target_link_libraries(${target} PRIVATE Boost::headers)
      elseif(line MATCHES "<sqlite3")
        target_link_libraries(${target} PRIVATE SQLite::SQLite3)
      elseif(line MATCHES "\"((tests|bench)/.*)\"")
        list(APPEND files ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1})
      elseif(line MATCHES "\"(.*)/[^/]*\"")
        # The library of the folder, or of the folder above that has one.
        string(REPLACE "/" "_" library pipesim_${CMAKE_MATCH_1})
        while(NOT TARGET ${library} AND library MATCHES "(.*)_[^_]*")
          set(library ${CMAKE_MATCH_1})
        endwhile()
        target_link_libraries(${target} PRIVATE ${library})
      endif()
      # Who asks the registry of schedules wants them in it.
      if(line MATCHES "\"sim/planning/schedule.h\"")
        target_link_libraries(${target} PRIVATE pipesim_schedules)
      endif()
    endforeach()
  endwhile()
endfunction()
