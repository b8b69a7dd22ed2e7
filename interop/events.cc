// Writes an event file for interop/events.py. The argument is the folder; each line of stdin is "scalar TAG STEP VALUE", "histogram TAG
// STEP FILE" (of floats), "image TAG STEP FILE.png", "text TAG STEP FILE", or "again", which closes and reopens the file.
#include <cstring>
#include <iostream>
#include <memory>

#include "heed/io/file.h"
#include "heed/train/event_file.h"

namespace {

using namespace heed;

void write_events(const Path& folder) {
  auto events = std::make_unique<EventFile>(folder);
  for (std::string command, tag, value; std::cin >> command;) {
    if (command == "again") {
      events.reset();
      events = std::make_unique<EventFile>(folder);
      continue;
    }
    int64_t step = 0;
    check(static_cast<bool>(std::cin >> tag >> step >> value), "interop: found an incomplete line");
    if (command == "scalar") events->scalar(tag, step, std::stod(value));
    if (command == "histogram") {
      const std::string bytes = read_text(value, 1 << 20);
      std::vector<float> values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
      events->histogram(tag, step, values);
    }
    if (command == "image") events->image(tag, step, read_image(value));
    if (command == "text") events->text(tag, step, read_text(value, 1 << 20));
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    check(count == 2, "interop: found ", count - 1, " arguments, expected a folder");
    write_events(arguments[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
