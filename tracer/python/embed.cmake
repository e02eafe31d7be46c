# cmake -DOUTPUT=<file.cpp> -DENTRIES=<name=file|name=file...> -P embed.cmake
# Writes each file as an array of characters with a zero at the end.
set(text "#include \"python/sources.h\"\n\nnamespace vramtrack {\n")
string(REPLACE "|" ";" entries "${ENTRIES}")
foreach(entry IN LISTS entries)
  string(REGEX MATCH "^([^=]+)=(.+)$" matched "${entry}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND text "const char ${name}[] = {\n${bytes}0};\n")
endforeach()
string(APPEND text "}  // namespace vramtrack\n")
file(WRITE "${OUTPUT}" "${text}")
