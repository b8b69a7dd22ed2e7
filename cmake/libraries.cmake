# heed_module(MODULE [COMPOSES] [EXCLUDE REGEX] [PRIVATE library...]): the sources of heed/MODULE as objects, in the target
# heed_module_MODULE. COMPOSES: the module only puts ops together, so it need not be compiled as hard as what computes. EXCLUDE: without these.
function(heed_module module)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMPOSES" "EXCLUDE" "PRIVATE")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/heed/${module}/*.cc)
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  set(target heed_module_${module})
  set(cuda_target heed_cuda_${module})
  if(heed_with_cuda)
    list(FILTER sources EXCLUDE REGEX "/cuda/no_driver.cc$")
    heed_cuda_objects(${cuda_target} ${module})
  else()
    heed_kernel_stubs(${module} stubs)
  endif()
  add_library(${target} OBJECT ${sources} ${stubs})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON HEED_OBJECTS "$<TARGET_OBJECTS:${target}>")
  if(TARGET ${cuda_target})
    set_property(TARGET ${target} APPEND PROPERTY HEED_OBJECTS "$<TARGET_OBJECTS:${cuda_target}>")
  endif()
  # clang reads HEED_API of a namespace only where a function is defined, so there everything stays visible.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # Three instruction sets are enough: AVX-512, AVX2, and whatever the compiler's baseline is.
  target_compile_definitions(${target} PRIVATE HWY_DISABLED_TARGETS=\(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL\))
  target_link_libraries(${target} PRIVATE heed_flags ${arg_PRIVATE})

  # Headers that are parsed once, not in every file. JSON is left to those modules that mostly use it: it takes half a second in every file
  # that sees it. All modules with the same flags share one.
  set(headers <algorithm> <functional> <map> <memory> <sstream> <string> <vector>)
  set(owner heed_module_core)
  if(arg_COMPOSES)
    target_link_libraries(${target} PRIVATE heed_quick_warnings)
    target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
    list(APPEND headers <nlohmann/json.hpp>)
    set(owner heed_module_data)
    foreach(source IN LISTS sources)
      if(source MATCHES "/(train/optimizer|data/augment|data/image_ops)\\.cc$")  # these compute
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${headers})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()

  # Fuzzers read files. What computes is compiled for one instruction set, without sanitizers.
  if(HEED_FUZZ)
    target_compile_definitions(${target} PRIVATE HWY_COMPILE_ONLY_STATIC)
    if(module MATCHES "^(ops|attention)$")
      set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endif()
  heed_batches(${target})
endfunction()

# heed_objects_of(OBJECTS MODULE...): the objects of modules, for add_library.
function(heed_objects_of variable)
  set(objects)
  foreach(module IN LISTS ARGN)
    get_target_property(of_module heed_module_${module} HEED_OBJECTS)
    list(APPEND objects ${of_module})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# heed_library(NAME MODULES module... [NEEDS library of heed] [PUBLIC library...] [PRIVATE library...]): makes
#   heed_NAME         static, or shared with BUILD_SHARED_LIBS; installed; heed::NAME for programs
#   heed_NAME_static  for the program, the tests and the benchmarks, which use what shared libraries hide
#   heed_NAME_shared  for tests that shared libraries export what programs need
# Both kinds are made of the same objects, and only what is needed is linked.
function(heed_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NEEDS" "MODULES;PUBLIC;PRIVATE")
  heed_objects_of(objects ${arg_MODULES})
  set(kind static)
  set(twin shared)
  if(heed_shared)
    set(kind shared)
    set(twin static)
  endif()
  string(TOUPPER ${kind} KIND)
  string(TOUPPER ${twin} TWIN)
  add_library(heed_${name} ${KIND} ${objects})
  add_library(heed_${name}_${kind} ALIAS heed_${name})
  add_library(heed_${name}_${twin} ${TWIN} EXCLUDE_FROM_ALL ${objects})
  add_library(heed::${name} ALIAS heed_${name})

  foreach(target heed_${name} heed_${name}_${twin})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME heed_${name} LINKER_LANGUAGE CXX)
    target_compile_features(${target} PUBLIC cxx_std_20)
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} $<BUILD_INTERFACE:heed_flags>)
  endforeach()
  if(arg_NEEDS)
    target_link_libraries(heed_${name} PUBLIC heed_${arg_NEEDS})
    target_link_libraries(heed_${name}_${twin} PUBLIC heed_${arg_NEEDS}_${twin})
  endif()
  # Before 1.0, a minor version may change the interface.
  set_target_properties(heed_${name}_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        INSTALL_RPATH "$ORIGIN")
  target_link_options(heed_${name}_shared PRIVATE $<$<NOT:$<BOOL:${HEED_SANITIZE}>>:LINKER:--no-undefined>)

  # The headers of cmake/public_headers.cmake.
  set(headers)
  foreach(module IN LISTS arg_MODULES)
    list(TRANSFORM heed_headers_of_${module} PREPEND ${PROJECT_SOURCE_DIR}/heed/${module}/ OUTPUT_VARIABLE patterns)
    if(patterns)
      file(GLOB found CONFIGURE_DEPENDS ${patterns})
      list(APPEND headers ${found})
    endif()
  endforeach()
  target_sources(heed_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_include_directories(heed_${name}_${twin} PUBLIC ${PROJECT_SOURCE_DIR})
  if(HEED_INSTALL)
    set_target_properties(heed_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS heed_${name} EXPORT heed-${name}-targets FILE_SET HEADERS)
    install(EXPORT heed-${name}-targets NAMESPACE heed:: DESTINATION ${heed_config_folder})
  endif()
endfunction()

# heed_relocatable(PROGRAM): it also finds shared libraries in ../lib, as cmake/bundle packs them; and so do those libraries.
function(heed_relocatable program)
  set_target_properties(${program} PROPERTIES BUILD_RPATH "$ORIGIN/../lib" INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${program} PRIVATE LINKER:--disable-new-dtags)
endfunction()
