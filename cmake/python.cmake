# The Python package pipesim (docs/how-to/python.md): python/*.cc become its module _pipesim. It stands in
# the build tree as it would be installed: PYTHONPATH=build/release/python.
option(PIPESIM_PYTHON "Build the Python package, where pybind11 is found" ON)
if(NOT PIPESIM_PYTHON)
  return()
endif()
# Debian's interpreter, whose headers and NumPy are packages too, unless another one is asked for.
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.9 COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  find_package(pybind11 2.10 QUIET CONFIG)
endif()
if(NOT pybind11_FOUND)
  message(NOTICE "The Python package is not built: pybind11-dev or python3-dev is not found")
  return()
endif()

set(package ${PROJECT_BINARY_DIR}/python/pipesim)
file(MAKE_DIRECTORY ${package})
file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/pipesim/*.py
     ${PROJECT_SOURCE_DIR}/python/pipesim/*.pyi ${PROJECT_SOURCE_DIR}/python/pipesim/py.typed)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME)
  file(CREATE_LINK ${script} ${package}/${name} SYMBOLIC)
endforeach()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/*.cc)
pybind11_add_module(pipesim_python MODULE NO_EXTRAS ${sources})
compile_together(pipesim_python)
optimise_little(pipesim_python)
target_link_libraries(pipesim_python PRIVATE pipesim_library pipesim_validate_papers
                                             pipesim_sim_sweep pipesim_sim_layouts pipesim_sim_exact
                                             pipesim_sim_sensitivity pipesim_sim_goodput)
target_compile_definitions(pipesim_python PRIVATE PIPESIM_VERSION="${PROJECT_VERSION}")
# Python opens it by its path: nobody else needs its symbols.
target_link_options(pipesim_python PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(pipesim_python PROPERTIES OUTPUT_NAME _pipesim
                                                LIBRARY_OUTPUT_DIRECTORY ${package})

# `pip install .` (setup.py) installs this component as the folder of the package: the module, the program, and
# below both the data that they read.
set(to COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS pipesim_python LIBRARY DESTINATION . ${to})
install(TARGETS pipesim RUNTIME DESTINATION bin ${to})
pipesim_install_data(share/pipesim ${to})
foreach(module pipesim_simgrid pipesim_http)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION lib/pipesim ${to})
  endif()
endforeach()
