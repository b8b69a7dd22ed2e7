// heed serve: a page and an API for models and runs.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <new>

#include "heed/cli/command.h"
#include "heed/cli/int8_flag.h"
#include "heed/io/paths.h"
#include "heed/serve/server.h"

namespace heed::cli {
namespace {

struct ServeFlags {
  serve::ServeOptions options = {};
  std::string runs = "runs";
  int64_t port = 8080, memory = int64_t{8} << 30;
  bool int8 = false, quiet = false, no_train = false;
};

std::string own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

void run_serve(ServeFlags& flags) {
  std::set_new_handler(nullptr);  // a request that needs too much memory fails alone
  serve::ServeOptions& options = flags.options;
  options.http.port = static_cast<uint16_t>(flags.port);
  options.models.runs = flags.runs;
  options.models.memory = flags.memory;
  options.models.host.weights = weights_for(flags.int8);
  options.log = !flags.quiet;
  options.train = !flags.no_train;
  options.program = own_path();
  options.version = HEED_VERSION;
  const int exit_code = serve::serve(options, [](const std::string& address) { std::cout << "heed serves " << address << std::endl; });
  if (exit_code != 0) throw StoppedError("serve: stopped at once by a second signal");
}

const Command serve_command("serve", "Serve a web page and an API for models, runs and attention", [](Flags& flags) {
  auto all = std::make_shared<ServeFlags>();
  serve::ServeOptions& options = all->options;
  flags.option("models", options.models.models, "Folders of models or runs; NAME=FOLDER gives another name")
      .usage("[MODEL ...]")
      .no_default();
  flags.option("--host", options.http.host, "Address to listen on; an address that other machines can reach needs --token")
      .value("ADDRESS");
  flags.option("--port", all->port, "Port to listen on; 0: any free one").value("PORT").must_be(whole_within(0, 65535));
  flags.option("--runs", all->runs, "Folder of training runs, whose best models are served too; '' for none").value("FOLDER");
  flags.option("--token", options.token, "Requests need the header Authorization: Bearer TOKEN").value("TOKEN").no_default();
  flags.option("--allow-origin", options.origins, "Let pages of another site send requests; * for all")
      .value("ORIGIN")
      .one_value()
      .no_default();
  flags.option("--memory", all->memory, "Memory for weights; the least recently used models are unloaded")
      .value("SIZE")
      .must_be(byte_size());
  flags.option("--parallel", options.models.host.texts.most_running, "Texts that a model generates at the same time")
      .value("N")
      .must_be(whole_within(1, 1024));
  flags.option("--cache", options.models.host.texts.cache_bytes, "Memory for keys and values of the texts that a model generates")
      .value("SIZE")
      .must_be(byte_size());
  flags.option("--queue", options.models.host.most_waiting, "Requests that may wait for a model; more get 429")
      .value("N")
      .must_be(positive());
  flags.option("--max-tokens", options.max_tokens, "Maximum number of tokens generated for a text").value("N").must_be(positive());
  flags.option("--max-seconds", options.max_seconds, "Maximum time to generate a text").value("SECONDS").must_be(positive());
  flags.option("--max-body", options.http.max_body, "Largest body of a request").value("SIZE").must_be(byte_size());
  flags.option("--max-connections", options.http.max_connections, "Connections at the same time").value("N").must_be(positive());
  flags.option("--idle", options.http.idle_seconds, "Seconds after which a connection without a request is closed")
      .value("SECONDS")
      .must_be(positive());
  add_int8_flag(flags, all->int8);
  flags.flag("--no-train", all->no_train, "Clients may not start, stop or resume training runs");
  flags.flag("--quiet", all->quiet, "Do not log each request as a line of JSON on standard error");
  flags.footer(
      "The page is at the printed address, the description of the API at /openapi.json. /v1 can be used by clients of OpenAI's API.\n"
      "After SIGTERM or Ctrl-C, running requests are finished; a second signal stops at once.\n\nExamples:\n  heed serve\n  heed serve "
      "gpt2 minilm --port 9000\n"
      "  heed serve chat=models/llama --int8\n  heed serve --host 0.0.0.0 --token secret --no-train\n"
      "  heed serve gpt2 --allow-origin https://example.org");
  return [all] { run_serve(*all); };
});

}  // namespace
}  // namespace heed::cli
