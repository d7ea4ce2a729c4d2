# `tools/check_schedule NAME` and what an author of a schedule sees: the schedule of
# docs/how-to/add-a-schedule.md, and one that claims nothing, registered in executables of their own.
set(guide ${PROJECT_SOURCE_DIR}/docs/how-to/add-a-schedule.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${guide})
file(READ ${guide} text)
if(NOT text MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "${guide} has no schedule in a block of C++")
endif()
set(schedule_of_guide ${CMAKE_CURRENT_BINARY_DIR}/schedules/backward_first.cc)
file(CONFIGURE OUTPUT ${schedule_of_guide} CONTENT "${CMAKE_MATCH_1}" @ONLY)

file(GLOB claims CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/claims/*_test.cc)
add_library(check_schedule_objects OBJECT ${claims} claims/check_schedule.cc)
target_link_libraries(check_schedule_objects PUBLIC pipesim_sim_planning pipesim_sim_interop_torch
                                                    GTest::gtest)
foreach(name check_schedule check_schedule_of_author)
  add_executable(${name} $<TARGET_OBJECTS:check_schedule_objects>)
  target_link_libraries(${name} PRIVATE pipesim_schedules pipesim_sim_planning
                                        pipesim_sim_interop_torch GTest::gtest)
endforeach()
target_sources(check_schedule_of_author PRIVATE ${schedule_of_guide} schedules/author/faulty.cc)

# The command as an author would build it.
add_executable(pipesim_of_author $<TARGET_OBJECTS:pipesim> ${schedule_of_guide}
                                schedules/author/schedule_without_claims.cc)
target_link_libraries(pipesim_of_author PRIVATE $<TARGET_PROPERTY:pipesim,LINK_LIBRARIES>)
add_executable(author_test schedules/author/commands_test.cc)
target_link_libraries(author_test PRIVATE pipesim_options GTest::gtest_main)
target_compile_definitions(
  author_test PRIVATE PIPESIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                      PIPESIM_EXECUTABLE="$<TARGET_FILE:pipesim>"
                      PIPESIM_OF_AUTHOR="$<TARGET_FILE:pipesim_of_author>")
add_dependencies(author_test pipesim_of_author)
gtest_discover_tests(author_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                     WORKING_DIRECTORY ${PROJECT_BINARY_DIR} PROPERTIES LABELS schedules)

# check_schedule NAME ends as it should, and says so in these words.
function(expect_of_check test executable name words)
  add_test(NAME CheckSchedule.${test} COMMAND ${executable} ${name})
  set_tests_properties(CheckSchedule.${test} PROPERTIES LABELS quick-claims PASS_REGULAR_EXPRESSION "${words}")
endfunction()
expect_of_check(HoldsTheScheduleOfTheGuide check_schedule_of_author backward-first
                "backward-first keeps to its record")
expect_of_check(TakesAFile check_schedule schedules/zb_h1.cc
                "bubble 11.11%; held at most, in microbatches by device: 4 4 4 4")
expect_of_check(NamesTheNearest check_schedule zb-h3 "no schedule 'zb-h3'; did you mean 'zb-h1'")
expect_of_check(SaysWhichClaimFails check_schedule_of_author faulty-claim
                "faulty-claim holds 1 on device 0 and claims 0: m-1 .everywhere.")
expect_of_check(SaysWhichPassIsMissing check_schedule_of_author faulty-missing
                "faulty-missing: not a program: device 0: 0BW0, or 0B0 and 0W0, is missing")
expect_of_check(SaysWhichPassIsTwice check_schedule_of_author faulty-twice
                "faulty-twice: not a program: device 0, pass 2 of 3 from 0: 0F0 is there twice")
expect_of_check(SaysWhereItDeadlocks check_schedule_of_author faulty-deadlock
                "faulty-deadlock: .*0BW0 needs 0F0")
