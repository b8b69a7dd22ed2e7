# heed_embed_files(TARGET): adds the files that heed serve gives out, as a C++ source: the description of its API and the page, if it was built.
# Run as a script, it writes that source: cmake -DOUTPUT=FILE -DROOT=FOLDER -P embed.cmake
function(heed_embed_bytes result name file)
  set(bytes)
  if(EXISTS ${file})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  endif()
  set(${result} "${${result}}extern const unsigned char ${name}[] = {${bytes}0};\nextern const unsigned long ${name}Size = sizeof ${name} - 1;\n" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Written by cmake/embed.cmake.\nnamespace heed::serve {\n")
  heed_embed_bytes(text kOpenApi ${ROOT}/heed/serve/openapi.json)
  heed_embed_bytes(text kPage ${ROOT}/web/dist/index.html.gz)
  file(WRITE ${OUTPUT} "${text}}  // namespace heed::serve\n")
  return()
endif()

function(heed_embed_files target)
  set(output ${PROJECT_BINARY_DIR}/embedded_files.cc)
  file(GLOB page CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/dist/index.html.gz)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${PROJECT_SOURCE_DIR} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${PROJECT_SOURCE_DIR}/heed/serve/openapi.json ${PROJECT_SOURCE_DIR}/cmake/embed.cmake ${page})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${output})
endfunction()
