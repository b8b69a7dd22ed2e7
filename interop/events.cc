// What interop/events.py has heed put into an event file. The argument is the folder; each line is "scalar TAG STEP VALUE",
// "histogram TAG STEP FILE.npy", "image TAG STEP FILE.png", "text TAG STEP FILE", or "again", which closes the file and goes on with it.
#include <iostream>
#include <memory>

#include "heed/io/npy.h"
#include "heed/train/event_file.h"

namespace {

using namespace heed;

void write_events(const Path& folder) {
  auto events = std::make_unique<EventFile>(folder);
  for (std::string what, tag, value; std::cin >> what;) {
    if (what == "again") {
      events.reset();
      events = std::make_unique<EventFile>(folder);
      continue;
    }
    int64_t step = 0;
    check(static_cast<bool>(std::cin >> tag >> step >> value), "interop: found half a line");
    if (what == "scalar") events->scalar(tag, step, std::stod(value));
    if (what == "histogram") events->histogram(tag, step, read_npy(value).to_vector<float>());
    if (what == "image") events->image(tag, step, read_picture(value));
    if (what == "text") events->text(tag, step, read_text(value, 1 << 20));
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    check(count == 2, "interop: found ", count - 1, " arguments, expected a folder");
    write_events(words[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
