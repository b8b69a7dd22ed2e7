# The libraries that heed uses, as targets. heed's own build includes this file, and so does find_package(heed). What is missing is an error in
# the build; in find_package(heed) it means that heed is not found.

# heed_find_package(NAME ...): as find_package.
macro(heed_find_package)
  if("${CMAKE_FIND_PACKAGE_NAME}" STREQUAL "heed")
    find_dependency(${ARGN})
  else()
    find_package(${ARGN} REQUIRED)
  endif()
endmacro()

# heed_find_library(TARGET LIBRARY HEADER PACKAGE): heed::TARGET, for libraries that CMake has no module for. PACKAGE: Debian's name of it. What is
# missing is added to heed_missing in find_package(heed).
function(heed_find_library target library header package)
  if(TARGET heed::${target})
    return()
  endif()
  string(TOUPPER HEED_${target} prefix)
  find_library(${prefix}_LIBRARY ${library})
  find_path(${prefix}_INCLUDE_DIR ${header})
  mark_as_advanced(${prefix}_LIBRARY ${prefix}_INCLUDE_DIR)
  if(NOT ${prefix}_LIBRARY OR NOT ${prefix}_INCLUDE_DIR)
    set(missing "heed needs ${library} (${header}), which was not found. On Debian: apt-get install ${package}. Elsewhere, set ${prefix}_LIBRARY and ${prefix}_INCLUDE_DIR.")
    if(NOT "${CMAKE_FIND_PACKAGE_NAME}" STREQUAL "heed")
      message(FATAL_ERROR "${missing}")
    endif()
    set(heed_missing "${heed_missing}${missing} " PARENT_SCOPE)
    return()
  endif()
  add_library(heed::${target} UNKNOWN IMPORTED)
  set_target_properties(heed::${target} PROPERTIES IMPORTED_LOCATION ${${prefix}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${prefix}_INCLUDE_DIR})
endfunction()

# heed::cudart: CUDA's runtime, static, for builds with CUDA.
macro(heed_find_cuda)
  if(NOT TARGET heed::cudart)
    find_library(HEED_CUDART_LIBRARY cudart_static HINTS /usr/local/cuda/lib64 $ENV{CUDA_HOME}/lib64 REQUIRED)
    mark_as_advanced(HEED_CUDART_LIBRARY)
    add_library(heed::cudart UNKNOWN IMPORTED)
    set_target_properties(heed::cudart PROPERTIES IMPORTED_LOCATION ${HEED_CUDART_LIBRARY} INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS};rt")
  endif()
endmacro()

# heed_find_dependencies(LIBRARY): what a library of heed links.
macro(heed_find_dependencies library)
  heed_find_package(Threads)
  if("${library}" STREQUAL "core")
    # oneDNN by its name: Debian's package file for CMake requires OpenCL, which heed does not need.
    heed_find_library(dnnl dnnl oneapi/dnnl/dnnl.h libdnnl-dev)
    heed_find_library(hwy hwy hwy/highway.h libhwy-dev)
  elseif("${library}" STREQUAL "models")
    heed_find_package(nlohmann_json)
    heed_find_package(ZLIB)
    heed_find_package(PNG)
    heed_find_package(JPEG)
    heed_find_library(webp webp webp/decode.h libwebp-dev)
    heed_find_library(utf8proc utf8proc utf8proc.h libutf8proc-dev)
    heed_find_library(pcre2 pcre2-8 pcre2.h libpcre2-dev)
  elseif("${library}" STREQUAL "train")
    heed_find_package(ZLIB)
    heed_find_library(tomlplusplus tomlplusplus toml++/toml.h libtomlplusplus-dev)
  endif()
endmacro()
