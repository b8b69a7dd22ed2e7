// Registry of memory-mapped files. Accessing a page of a file that was truncated after it was mapped raises SIGBUS; the handler prints a
// message that names the file.
#pragma once

#include <cstddef>

namespace heed {

// name: must stay valid until unregister_mapping. Returns a handle for unregister_mapping, -1 if the table is full.
int register_mapping(const std::byte* data, size_t bytes, const char* name);
void unregister_mapping(int handle);

// Installs a SIGBUS handler: a mapped file that is truncated while being read ends the process with a message and exit code 3.
void exit_on_truncated_mapping();

}  // namespace heed
