# PIPESIM_CUDA says if pipesim-calibrate is built:
#   AUTO  where there is a CUDA compiler with cuBLASLt, else one line says what is missing
#   ON    the same, and a missing part is an error
#   OFF   no
# Sets PIPESIM_CUDA_FOUND, and cuDNN's and NCCL's places: beside CUDA, or where the caller points.
set(PIPESIM_CUDA AUTO CACHE STRING "Build pipesim-calibrate: AUTO, ON or OFF")
set_property(CACHE PIPESIM_CUDA PROPERTY STRINGS AUTO ON OFF)

# Code for the cards that this nvcc knows of, and for later ones what their driver compiles.
function(pipesim_cuda_architectures result)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  set(architectures)
  foreach(each 80 86 89 90 100 120)
    if(known MATCHES "sm_${each}([^0-9a-z]|$)")
      list(APPEND architectures ${each}-real)
      set(last ${each})
    endif()
  endforeach()
  if(NOT architectures)
    set(last 80)
  endif()
  list(APPEND architectures ${last}-virtual)
  set(${result} "${architectures}" PARENT_SCOPE)
endfunction()

set(PIPESIM_CUDA_FOUND OFF)
set(missing "PIPESIM_CUDA is OFF")
if(PIPESIM_CUDA)
  include(CheckLanguage)
  set(message_level ${CMAKE_MESSAGE_LOG_LEVEL})
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING) # one line is enough
  check_language(CUDA)
  set(missing "no CUDA compiler (nvcc) is found")
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      pipesim_cuda_architectures(CMAKE_CUDA_ARCHITECTURES)
    endif()
    enable_language(CUDA)
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 knows nvcc up to C++17
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
    find_package(CUDAToolkit QUIET)
    if(TARGET CUDA::cublasLt)
      set(PIPESIM_CUDA_FOUND ON)
    else()
      set(missing "CUDA lacks cuBLASLt")
    endif()
  endif()
  set(CMAKE_MESSAGE_LOG_LEVEL ${message_level})
endif()

if(NOT PIPESIM_CUDA_FOUND)
  if(PIPESIM_CUDA AND NOT PIPESIM_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "pipesim-calibrate cannot be built: ${missing}")
  endif()
  message(NOTICE "pipesim-calibrate is not built: ${missing}")
  return()
endif()

set(hints ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/include)
find_path(PIPESIM_CUDNN_INCLUDE cudnn_graph.h HINTS ${hints})
find_library(PIPESIM_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(PIPESIM_NCCL_INCLUDE nccl.h HINTS ${hints})
find_library(PIPESIM_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(PIPESIM_CUDNN_INCLUDE PIPESIM_CUDNN_LIBRARY PIPESIM_NCCL_INCLUDE
                 PIPESIM_NCCL_LIBRARY)

# A part that is left out is named at configuration, and again by every measurement.
if(NOT (PIPESIM_CUDNN_INCLUDE AND PIPESIM_CUDNN_LIBRARY))
  message(NOTICE "pipesim-calibrate is built without cuDNN, and measures no fused attention: set "
                 "PIPESIM_CUDNN_INCLUDE and PIPESIM_CUDNN_LIBRARY to where cudnn_graph.h and libcudnn.so.9 are")
endif()
if(NOT (PIPESIM_NCCL_INCLUDE AND PIPESIM_NCCL_LIBRARY))
  message(NOTICE "pipesim-calibrate is built without NCCL, and measures no collectives: set "
                 "PIPESIM_NCCL_INCLUDE and PIPESIM_NCCL_LIBRARY to where nccl.h and libnccl.so.2 are")
endif()
