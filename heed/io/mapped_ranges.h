// The files that are mapped into memory. Reading a page of one that was cut short meanwhile is a signal, not an exception; the program
// answers it with a message that names the file.
#pragma once

#include <cstddef>

namespace heed {

// name: stays where it is until the range is forgotten. -> a place for forget_mapping; -1: there is none left
int remember_mapping(const std::byte* data, size_t bytes, const char* name);
void forget_mapping(int place);

// From now on, a mapped file that is cut short while it is read ends the process with a message and exit code 3. For programs: it
// replaces the handler of SIGBUS.
void end_on_shortened_files();

}  // namespace heed
