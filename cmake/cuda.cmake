# Whether pipesim-calibrate is built, by PIPESIM_CUDA:
#   AUTO  where there is a CUDA compiler with cuBLASLt, else one line says what is missing
#   ON    the same, and what is missing is an error
#   OFF   no
# Sets PIPESIM_CUDA_FOUND, and cuDNN's and NCCL's places: beside CUDA, or where the caller points.
set(PIPESIM_CUDA AUTO CACHE STRING "Build pipesim-calibrate: AUTO, ON or OFF")
set_property(CACHE PIPESIM_CUDA PROPERTY STRINGS AUTO ON OFF)

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
      set(CMAKE_CUDA_ARCHITECTURES 80-virtual) # the driver compiles it for the card
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
