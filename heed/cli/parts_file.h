// --parts FILE of commands that read large inputs: results of finished parts are kept in a file, so that a command that was stopped
// continues after the last of them.
#pragma once

#include <memory>

#include "heed/cli/command.h"
#include "heed/dist/split_work.h"
#include "heed/io/file.h"
#include "heed/train/append_only_file.h"

namespace heed::cli {

void add_parts_flag(Flags& flags, std::string& path);

// The first process reads and writes the file: records of a length, a checksum and bytes. A record that is not complete, as a killed
// process leaves it, is dropped.
class PartsFile : public FinishedParts {
 public:
  // model: a folder or file, whose contents must not change
  PartsFile(const Path& path, const Path& model);

  std::optional<std::string> next() override;
  void add(const std::string& result) override;
  void check_same(const std::string& what, const std::string& value) override;
  void remove();  // the command is done

 private:
  std::optional<std::string> stored();  // the next record of the first process, in all processes
  void append(const std::string& record);

  const Path path_;
  std::shared_ptr<const MappedFile> before_ = {};  // null in other processes than the first, and for a new file
  int64_t at_ = 0;                                 // of before_
  bool any_left_ = true;
  std::optional<AppendOnlyFile> file_ = {};
};

// Null for an empty path: nothing is kept.
std::unique_ptr<PartsFile> parts_file(const std::string& path, const std::string& model);

// What identifies the contents of files and of folders with all their subfolders: names, sizes and times of the last change. Other names
// stand for themselves. except: a file that is left out
std::string contents_of(const std::vector<Path>& paths, const Path& except = {});

}  // namespace heed::cli
