// heed convert: writes a checkpoint in another precision, as one file or in shards.
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "heed/cli/command.h"
#include "heed/cli/model_name.h"
#include "heed/cli/nonfinite_flag.h"
#include "heed/io/paths.h"
#include "heed/models/model.h"

namespace heed::cli {
namespace {

struct ConvertFlags {
  std::string from, to, dtype;
  uint64_t shard = 0;  // bytes
  std::vector<std::string> allow_missing, allow_unused;
  bool nonfinite = false;
};

const std::map<std::string, DType> kDTypes{{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};

// The dtype of the first floating-point parameter, used for all.
DType dtype_in(const Path& folder) {
  const Safetensors file = Safetensors::open(folder);
  for (const std::string& name : file.names())
    if (is_floating(file.entry(name).dtype)) return file.entry(name).dtype;
  return DType::f32;
}

// Files that save() writes itself, and parameters in other formats.
bool is_skipped(const Path& path) {
  const std::string name = path.filename(), end = path.extension();
  for (const char* other : {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack", ".onnx"})
    if (end == other) return true;
  return name == "config.json" || name == "generation_config.json" || name.starts_with(".") || name.starts_with("model.safetensors") ||
         (name.starts_with("model-") && end == ".safetensors");
}

void copy_other_files(const Path& from, const Path& to) {
  if (same_path(from, to)) return;
  for (const Path& entry : folder_entries(from)) {
    if (is_skipped(entry) || !is_plain_file(entry)) continue;
    const auto file = MappedFile::open(entry);
    FileWriter out(to / entry.filename());
    out.write(file->text(0, file->size()));
    out.commit();
  }
}

void run_convert(const ConvertFlags& options) {
  const Path from = options.from, to = options.to;
  const Model model = load(from, {.names = {.allow_missing = options.allow_missing,
                                            .allow_unused = options.allow_unused,
                                            .device = kCpu,
                                            .allow_nonfinite = nonfinite_warning(options.nonfinite)}});
  const DType dtype = options.dtype.empty() ? dtype_in(from) : kDTypes.at(options.dtype);
  save(model, to, {.dtype = dtype, .shard_bytes = static_cast<int64_t>(options.shard)});
  copy_other_files(from, to);
  std::cout << model.architecture() << ", " << model.params().count() << " parameters as " << name_of(dtype) << " in " << to.string()
            << '\n';
}

const Command convert_command("convert", "Write a checkpoint in another precision, in one file or in shards", [](Flags& flags) {
  auto options = std::make_shared<ConvertFlags>();
  flags.option("from", options->from, "Folder of a run, or with config.json and model.safetensors or its shards").required().value("FROM");
  flags.option("to", options->to, "Folder to write, created if missing").required().value("TO");
  flags.option("--dtype", options->dtype, "f32, f16 or bf16; unchanged by default").value("TYPE").must_be(key_of(kDTypes));
  flags.option("--shard", options->shard, "Maximum size of a file, for example 2GB; one file by default")
      .value("BYTES")
      .no_default()
      .must_be(byte_size());
  flags
      .option("--allow-missing", options->allow_missing,
              "Parameters whose names contain NAME may be missing: they are initialized randomly")
      .value("NAME")
      .one_value();
  flags.option("--allow-unused", options->allow_unused, "Tensors whose names contain NAME may be unused: they are left out")
      .value("NAME")
      .one_value();
  add_nonfinite_flag(flags, options->nonfinite);
  flags.footer("Examples:\n  heed convert my-model my-model-bf16 --dtype bf16\n  heed convert my-model shards --shard 2GB");
  return [options] {
    options->from = resolve_model(options->from);
    run_convert(*options);
  };
});

}  // namespace
}  // namespace heed::cli
