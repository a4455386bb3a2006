# What CMake 3.25 does not know of CUDA 13, and its toolkit. Once CUDA is enabled; also for tests/gpu, which is a project of its own.

# nvcc has had C++20 since 12.0.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
# FindCUDAToolkit marks this library as deprecated, and stops where there is none, as in CUDA 13.
if(NOT TARGET CUDA::nvToolsExt)
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit REQUIRED)
