// The thread of a model, and models that a training replaces while they answer.
#include "heed/serve/models.h"

#include <gtest/gtest.h>

#include <future>

#include "heed/core/parallel.h"
#include "heed/serve/answer.h"
#include "tests/serve/client.h"
#include "tests/serve/models.h"

namespace heed::serve {
namespace {

using test::ModelFolders;
using test::within_a_minute;

// Generates a text of 40 tokens. -> null, or the error
std::future<std::exception_ptr> submit_text(ModelHost& host, std::function<void()> on_token, Cancelled cancelled = {}) {
  const auto end = std::make_shared<std::promise<std::exception_ptr>>();
  const auto request = std::make_shared<GenerationRequest>();
  request->prompt = {1, 2};
  request->options.max_new_tokens = 40;
  request->on_token = [=](const GeneratedToken&) { on_token(); };
  request->on_end = [end](std::exception_ptr error) { end->set_value(error); };
  request->cancelled = std::move(cancelled);
  host.submit(request);
  return end->get_future();
}

std::function<void(LoadedModel& model)> endless_call(std::promise<void>& begun) {
  return [&begun](LoadedModel&) {
    begun.set_value();
    for (;;) parallel_tasks(1, [](int64_t) { std::this_thread::yield(); });
  };
}

TEST(ServedModels, finish_their_requests_when_a_better_one_is_written) {
  ModelFolders folders;
  const Path run = folders.path() / "runs/language/one";
  std::filesystem::create_directories(run);
  std::filesystem::rename(folders.add("gpt2-lm"), run / "best");
  test::put(run / "config.toml", "");
  Metrics metrics;
  int tokens = 0;
  std::promise<void> begun, replaced;
  Models models({.runs = folders.path() / "runs"}, metrics);
  std::future<std::exception_ptr> end = submit_text(*models.host("language/one"), [&] {
    if (++tokens == 1) begun.set_value(), replaced.get_future().wait();
  });
  begun.get_future().wait();
  const Path config = run / "best/config.json";
  std::filesystem::last_write_time(config, std::filesystem::last_write_time(config) + std::chrono::seconds(2));
  EXPECT_EQ(models.list().size(), 1u);
  EXPECT_FALSE(models.is_loaded("language/one"));  // the new model is not loaded yet
  replaced.set_value();
  EXPECT_EQ(end.get(), nullptr);
  EXPECT_EQ(tokens, 40);
  EXPECT_TRUE(within_a_minute([&] { return models.list().size() == 1 && metrics.cache_blocks == 0; }));  // the memory is free again
}

TEST(ServedModels, drop_requests_of_clients_that_disconnected) {
  ModelFolders folders;
  const ModelInfo info = describe_model("bert", folders.add("bert-model"));
  Metrics metrics;
  std::promise<void> busy, free, last;
  std::atomic<int> done{0}, failed{0};
  ModelHost host(info, {}, metrics, [](int64_t) {});
  const Failed fail = [&](std::exception_ptr) { ++failed; };
  host.submit(ModelJob{.run = [&](LoadedModel&) { busy.set_value(), free.get_future().wait(); }, .failed = fail});
  busy.get_future().wait();
  const Cancelled gone = [] { return true; };
  host.submit(
      BatchJob{.sentences = {Encoding{}}, .done = [&](const LoadedModel&, const Tensors&) { ++done; }, .failed = fail, .cancelled = gone});
  host.submit(ModelJob{.run = [&](LoadedModel&) { ++done; }, .failed = fail, .cancelled = gone});
  host.submit(ModelJob{.run = [&](LoadedModel&) { last.set_value(); }, .failed = fail, .cancelled = [] { return false; }});
  free.set_value();
  last.get_future().wait();
  EXPECT_EQ(done, 0);
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(metrics.queued, 0);
}

TEST(ServedModels, stop_texts_of_clients_that_disconnected) {
  ModelFolders folders;
  Metrics metrics;
  int tokens = 0;
  ModelHost host(describe_model("gpt2", folders.add("gpt2-lm")), {}, metrics, [](int64_t) {});
  std::future<std::exception_ptr> end = submit_text(
      host, [&] { ++tokens; }, [&] { return tokens > 0; });
  EXPECT_THROW(std::rethrow_exception(end.get()), HttpError);
  EXPECT_EQ(tokens, 1);
}

// Further choices of a prompt start after the prompt is processed. Until then they are counted, or too many texts would run.
TEST(ServedModels, count_choices_that_have_not_started) {
  ModelFolders folders;
  const ModelInfo info = describe_model("gpt2", folders.add("gpt2-lm"));
  Metrics metrics;
  int64_t most = 0;
  std::promise<void> busy, free;
  std::vector<std::future<std::exception_ptr>> ends;
  ModelHost host(info, {.texts = {.most_running = 4}}, metrics, [](int64_t) {});
  host.submit(ModelJob{.run = [&](LoadedModel&) { busy.set_value(), free.get_future().wait(); }, .failed = [](std::exception_ptr) {}});
  busy.get_future().wait();
  for (int i = 0; i < 3; ++i) {
    const auto end = std::make_shared<std::promise<std::exception_ptr>>();
    const auto request = std::make_shared<GenerationRequest>();
    request->prompt = {1, 2};
    request->options.max_new_tokens = 8;
    request->choices = 3;
    request->on_token = [&](const GeneratedToken&) { most = std::max<int64_t>(most, metrics.running); };
    request->on_end = [end](std::exception_ptr error) { end->set_value(error); };
    ends.push_back(end->get_future());
    host.submit(request);
  }
  free.set_value();
  for (std::future<std::exception_ptr>& end : ends) EXPECT_EQ(end.get(), nullptr);
  EXPECT_EQ(most, 3);
}

TEST(ServedModels, limit_the_memory_of_waiting_images) {
  ModelFolders folders;
  const ModelInfo info = describe_model("vit", folders.add("vit-classify"));
  constexpr int64_t side = 32, bytes = side * side * 3;
  Metrics metrics;
  std::promise<void> busy, free;
  std::atomic<int> answered{0};
  ModelHost host(info, {.most_image_bytes = 2 * bytes}, metrics, [](int64_t) {});
  host.submit(ModelJob{.run = [&](LoadedModel&) { busy.set_value(), free.get_future().wait(); }, .failed = [](std::exception_ptr) {}});
  busy.get_future().wait();
  const auto submit_image = [&] {
    BatchJob job{.kind = BatchJob::Kind::images, .images = {{side, side, std::vector<uint8_t>(bytes)}}};
    job.done = [&](const LoadedModel&, const Tensors&) { ++answered; };
    job.failed = [](std::exception_ptr) {};
    host.submit(std::move(job));
  };
  submit_image();
  submit_image();
  EXPECT_THROW(submit_image(), HttpError);
  free.set_value();
  EXPECT_TRUE(within_a_minute([&] { return answered == 2; }));
  submit_image();
  EXPECT_TRUE(within_a_minute([&] { return answered == 3; }));
}

// A run that was deleted and trained again has the same name but is another model.
TEST(ServedModels, are_reloaded_if_a_run_is_trained_again) {
  ModelFolders folders;
  const Path run = folders.path() / "runs/language/one", best = run / "best", away = folders.path() / "away";
  std::filesystem::create_directories(run);
  std::filesystem::rename(folders.add("gpt2-lm"), best);
  test::put(run / "config.toml", "");
  Metrics metrics;
  Models models({.runs = folders.path() / "runs"}, metrics);
  std::promise<void> loaded;
  models.host("language/one")->submit(ModelJob{.run = [&](LoadedModel&) { loaded.set_value(); }, .failed = [](std::exception_ptr) {}});
  loaded.get_future().wait();
  EXPECT_TRUE(models.is_loaded("language/one"));
  std::filesystem::rename(best, away);
  EXPECT_TRUE(models.list().empty());
  std::filesystem::last_write_time(away / "config.json", std::filesystem::last_write_time(away / "config.json") + std::chrono::seconds(2));
  std::filesystem::rename(away, best);
  EXPECT_EQ(models.list().size(), 1u);
  EXPECT_FALSE(models.is_loaded("language/one"));
}

int64_t count_threads() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

TEST(ServedModels, have_a_thread_from_their_first_use_until_they_are_dropped) {
  ModelFolders folders;
  const Path run = folders.path() / "runs/language/one";
  std::filesystem::create_directories(run);
  std::filesystem::rename(folders.add("gpt2-lm"), run / "best");
  test::put(run / "config.toml", "");
  Metrics metrics;
  Models models({.runs = folders.path() / "runs"}, metrics);
  models.list();
  const int64_t before = count_threads();
  EXPECT_EQ(models.host("language/one")->info().id, "language/one");
  EXPECT_LE(count_threads(), before);
  std::promise<void> used;
  models.host("language/one")->submit(ModelJob{.run = [&](LoadedModel&) { used.set_value(); }, .failed = [](std::exception_ptr) {}});
  used.get_future().wait();
  const int64_t during = count_threads();
  EXPECT_GT(during, before);
  std::filesystem::rename(run, folders.path() / "away");
  EXPECT_TRUE(within_a_minute([&] { return models.list().empty() && count_threads() < during; }));
}

// The model accepts one image size and does not resize images.
TEST(ServedModels, refuse_an_image_without_the_others_of_its_batch) {
  ModelFolders folders;
  const Path folder = folders.add("vit-classify");
  test::put(folder / "preprocessor_config.json", "{\"image_processor_type\": \"ViTImageProcessor\", \"do_resize\": false}");
  Metrics metrics;
  std::promise<void> busy, free, last;
  std::vector<int> answered(3), failed(3);
  ModelHost host(describe_model("vit", folder), {}, metrics, [](int64_t) {});
  host.submit(ModelJob{.run = [&](LoadedModel&) { busy.set_value(), free.get_future().wait(); }, .failed = [](std::exception_ptr) {}});
  busy.get_future().wait();
  for (const size_t i : {0u, 1u, 2u}) {
    const int64_t width = i == 1 ? 48 : 32;
    BatchJob job{.kind = BatchJob::Kind::images, .images = {{width, 32, std::vector<uint8_t>(static_cast<size_t>(width * 32 * 3))}}};
    job.done = [&, i](const LoadedModel&, const Tensors&) { ++answered[i]; };
    job.failed = [&, i](std::exception_ptr) { ++failed[i]; };
    host.submit(std::move(job));
  }
  host.submit(ModelJob{.run = [&](LoadedModel&) { last.set_value(); }, .failed = [](std::exception_ptr) {}});
  free.set_value();
  last.get_future().wait();
  EXPECT_EQ(answered, (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(failed, (std::vector<int>{0, 1, 0}));
}

TEST(ServedModels, stop_a_call_whose_client_disconnected) {
  ModelFolders folders;
  Metrics metrics;
  std::atomic<bool> gone{false};
  std::promise<void> busy, last;
  std::promise<std::exception_ptr> end;
  ModelHost host(describe_model("bert", folders.add("bert-model")), {}, metrics, [](int64_t) {});
  host.submit(ModelJob{.run = endless_call(busy),
                       .failed = [&](std::exception_ptr error) { end.set_value(error); },
                       .cancelled = [&] { return gone.load(); }});
  busy.get_future().wait();
  gone = true;
  EXPECT_THROW(std::rethrow_exception(end.get_future().get()), StoppedError);
  host.submit(ModelJob{.run = [&](LoadedModel&) { last.set_value(); }, .failed = [](std::exception_ptr) {}});
  last.get_future().wait();
}

// A call that is running when the server stops immediately could take minutes.
TEST(ServedModels, can_be_stopped_during_a_call) {
  ModelFolders folders;
  Metrics metrics;
  std::promise<void> busy;
  std::exception_ptr end;
  {
    ModelHost host(describe_model("bert", folders.add("bert-model")), {}, metrics, [](int64_t) {});
    host.submit(ModelJob{.run = endless_call(busy), .failed = [&](std::exception_ptr error) { end = error; }});
    busy.get_future().wait();
  }
  EXPECT_THROW(std::rethrow_exception(end), StoppedError);
}

}  // namespace
}  // namespace heed::serve
